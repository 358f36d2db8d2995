"""Recordings: a run that used a model as a text file, from which it can be replayed without the
model.

The first line has the settings, the model and the results. Each further line is an event of the
run's log or an exchange with the model.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks import results
from ir.errors import KernelError
from search.core.evaluation import Evaluation
from search.core.settings import settings
from search.core.stored import StoredEvent, StoredExchange, StoredRun
from search.store.store import Store

FORMAT = 1
ENDING = ".jsonl"


@dataclass(frozen=True, slots=True)
class Recording:
    """A run, its requests, and its results."""

    head: dict[str, Any]  # Format, run, settings, environment, models, endpoint, date, told.
    events: tuple[StoredEvent, ...]
    exchanges: tuple[StoredExchange, ...]

    @property
    def text(self) -> str:
        """The text of the file. `read` returns an equal value."""
        rows = [self.head]
        rows += ({"event": asdict(event)} for event in self.events)
        rows += ({"exchange": asdict(exchange)} for exchange in self.exchanges)
        return "".join(json.dumps(row) + "\n" for row in rows)

    @property
    def title(self) -> str:
        """A title for people."""
        head = self.head
        return f"{head['run']}, answers by {', '.join(head['models'])} at {head['endpoint']}"

    def keep(self, store: Store) -> str:
        """Puts the run into a store, from which it can be replayed. Returns its name there."""
        run = store.start(settings(json.dumps(self.head["settings"])), self.head["environment"])
        for event in self.events:
            store.log(run, event)
        for exchange in self.exchanges:
            store.exchanged(run, exchange)
        return run


def recording(store: Store, run: str, endpoint: str, date: str) -> Recording:
    """Returns the recording of a stored run.

    endpoint: which endpoint answered, without secrets. Raises KernelError if the run used no model,
    or has not ended.
    """
    found = store.load(run)
    exchanges = store.exchanges(run)
    if not exchanges:
        raise KernelError(
            f"run `{run}` asked no model", where="record", hint="record a run with --model"
        )
    if "" not in found.keys("stopped"):
        raise KernelError(f"run `{run}` has not ended", where="record", hint="go on with --resume")
    head = {
        "format": FORMAT,
        "run": run,
        "models": list(found.settings.models),
        "endpoint": endpoint,
        "date": date,
        "settings": json.loads(found.settings.to_json()),
        "environment": dict(found.environment),
        "told": told(found),
    }
    return Recording(head, found.events, exchanges)


def told(run: StoredRun) -> list[list[Any]]:
    """Returns all candidates in the order in which their outcomes took effect. Each has its time in
    us, or the stage at which it failed."""
    keys = dict.fromkeys(event.key for event in run.events if event.kind == "told")
    outcomes = ((key, run.outcomes[key]) for key in keys)
    return [[key, o.us if isinstance(o, Evaluation) else o.stage] for key, o in outcomes]


def read(file: Path) -> Recording:
    """Reads the recording in a file. Raises KernelError if it has none."""
    head: dict[str, Any] = {}
    events, exchanges = [], []
    try:
        for number, row in enumerate(_rows(file)):
            if number == 0:
                head = row
                if head["format"] != FORMAT:
                    raise KernelError(f"its format is {head['format']}, not {FORMAT}")
            elif "event" in row:
                events.append(StoredEvent(**row["event"]))
            else:
                exchanges.append(StoredExchange(**row["exchange"]))
        if not head:
            raise KernelError("it is empty")
    except (OSError, ValueError, KeyError, TypeError, KernelError) as error:
        what = error.what if isinstance(error, KernelError) else f"{type(error).__name__}: {error}"
        raise KernelError(
            f"{file.name} is no recording: {what}",
            allowed="a file that `python3 -m benchmarks.models record` wrote",
        ) from None
    return Recording(head, tuple(events), tuple(exchanges))


def _rows(file: Path) -> Iterator[dict[str, Any]]:
    with file.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def write(file: Path, made: Recording) -> None:
    """Writes a recording atomically."""
    results.replace(file, made.text)


def difference(made: Recording, again: StoredRun) -> str:
    """Returns the first difference between a replay and its recording. Empty if there is none."""
    wanted, found = made.head["told"], told(again)
    for number, (one, other) in enumerate(zip(wanted, found)):
        if one != other:
            return f"evaluation {number}: {one} was recorded, {other} came of the replay"
    if len(wanted) != len(found):
        return f"{len(wanted)} evaluations were recorded, the replay made {len(found)}"
    return ""
