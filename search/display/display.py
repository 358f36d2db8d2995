"""Displays of a running search: live on a terminal, or line by line in a log."""

from __future__ import annotations

import sys
import textwrap
from typing import Protocol, TextIO

from search.core import provenance, quantity
from search.core.candidate import Candidate
from search.core.evaluation import Failure
from search.core.events import Event, Improved, Started, Stopped, Told
from search.core.workload import words
from search.display.scoreboard import Scoreboard

LONGEST = 100  # characters of a log line
MOST_LINES = 5  # of a reason; the whole text is in `--json` and in a store


class Display(Protocol):
    """Shows one run after another; a context that restores the screen at its end."""

    def __enter__(self) -> Display: ...

    def __exit__(self, *_: object) -> None: ...

    def begin(self, number: int, count: int, title: str) -> None:
        """Announces run `number` (from 1) of `count`."""

    def on_event(self, event: Event) -> None:
        """Shows an event of the run."""

    def say(self, text: str) -> None:
        """Shows a permanent line."""


def display(stream: TextIO, quiet: bool) -> Display:
    """The display for a stream: lines if it is neither a terminal nor a notebook, or if `quiet`."""
    notebook = "ipykernel" in sys.modules  # redrawn below the cell, for any stream
    if quiet or not (stream.isatty() or notebook):
        return Lines(stream)
    try:
        from search.display.live import Live
    except ImportError:  # a GPU machine may have few packages
        return Lines(stream)
    return Live(stream)


class Lines:
    """Writes one line for each start, gain, failure and end."""

    def __init__(self, stream: TextIO):
        self.stream = stream
        self.board = Scoreboard()

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *_: object) -> None:
        self.stream.flush()

    def begin(self, number: int, count: int, title: str) -> None:
        """Announces a run."""
        self.board = Scoreboard()
        self.say(f"[{number}/{count}] {title}")

    def on_event(self, event: Event) -> None:
        """Writes an event, if it is important and is not a replay of an earlier session."""
        self.board.on_event(event)
        if isinstance(event, Started):
            self.say(_started(event))
        elif isinstance(event, Told) and isinstance(event.outcome, Failure):
            if not event.replayed and not event.outcome.slow:
                self.say(f"  #{event.number} {self._failed(event.candidate, event.outcome)}")
        elif isinstance(event, Improved) and not event.replayed:
            self.say(self._improved(event))
        elif isinstance(event, Stopped):
            self.say(self._stopped(event))

    def say(self, text: str) -> None:
        """Writes a line."""
        self.stream.write(text + "\n")
        self.stream.flush()

    def _failed(self, candidate: Candidate, outcome: Failure) -> str:
        if outcome.partly is not None:
            count = len(outcome.partly.times)
            shapes = f"{count} shape{'' if count == 1 else 's'}"
            return wrapped(f"works at {shapes} only: {outcome.reason}")
        stage = self.board.verdict(outcome, candidate.backend)
        who = f"{candidate.backend} " if self.board.races else ""
        return wrapped(f"{who}failed at {stage}: {outcome.reason.strip()}")

    def _improved(self, event: Improved) -> str:
        found = event.evaluation
        parts = [f"{quantity.time(found.us)} {found.time_kind}", f"correct by {found.correct_by}"]
        if self.board.races:
            parts.insert(0, event.candidate.backend)
        if event.speedup and event.candidate.origin.parents:
            parts.append(f"{quantity.factor(event.speedup)} over the first")
        parts.append(f"{quantity.share(self.board.roofline_share)} of the roofline")
        edits = short(self.board.edits(event.candidate))
        return f"  #{event.number} {', '.join(parts)}: {edits}"

    def _stopped(self, event: Stopped) -> str:
        counts = ", ".join(f"{n} at {stage}" for stage, n in self.board.failures.items())
        slow = f", {self.board.slow} too slow to be checked" if self.board.slow else ""
        known = f", {self.board.known} of them known from before" if self.board.known else ""
        return (
            f"  stopped after {quantity.duration(event.seconds)}: {event.reason}; "
            f"{quantity.count(event.evaluations, 'evaluation')}{known}{slow}, failures: {counts or 'none'}"
        )


def short(text: str) -> str:
    """The headline of a text, cut to a log line."""
    line = _headline(text)
    return line if len(line) <= LONGEST else line[: LONGEST - 3] + "..."


def wrapped(text: str) -> str:
    """The headline of a text, wrapped to at most MOST_LINES log lines."""
    made = textwrap.wrap(
        _headline(text),
        LONGEST,
        subsequent_indent="     ",
        max_lines=MOST_LINES,
        placeholder=" ...",
        break_on_hyphens=False,
    )
    return "\n".join(made)


def _headline(text: str) -> str:
    """The first line of a text, followed by the last if the first ends with a colon."""
    lines = text.strip().splitlines() or [""]
    return f"{lines[0]} {lines[-1].strip()}" if lines[0].endswith(":") else lines[0]


def _started(event: Started) -> str:
    verb = "goes on" if event.resumed else "starts"
    sizes = words(event.settings.shapes)
    bound = f"roofline {quantity.time(event.roofline_us)} computed for {event.settings.target}"
    line = f"  run {event.run} {verb}: {'; '.join(filter(None, (sizes, bound)))}"
    names = event.settings.backends
    for name in names:
        if said := provenance.here(event.environment, name):
            kinds = (said["correct_by"], said["time_kind"], event.settings.target)
            who = f"results of {name}" if len(names) > 1 else "results"
            line += f"\n  {who}: {provenance.sentence(said, *kinds)}"
    return line
