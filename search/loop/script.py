"""The script: in which order a search that asks models drew, asked and was told.

Answers and evaluations end in any order, and what is asked next depends on it. So the order is kept
in the log. A run that goes on, or is replayed, follows it, and finds the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from search.core.model_use import Spent
from search.core.stored import StoredEvent

DREW = "drew"  # a proposal was drawn
TOOK = "took"  # what came of a request took effect; the key is the request's name
TOLD = "told"  # an outcome took effect; the key is the candidate's
RESTED = "rested"  # models that gave no answer were waited for
LEFT = "left"  # the order was left; the key is how many of its events were followed
KINDS = (DREW, TOOK, TOLD, RESTED)


@dataclass(frozen=True, slots=True)
class Taken:
    """What came of a request, as the log has it."""

    operator: str  # empty for better prompts
    spent: Spent
    asked: str  # in words
    why: str = ""  # there is no child
    unanswered: bool = False  # as no model answered
    halted: bool = False  # as none can
    answer: str = ""  # the last that was refused, shortened
    prompt: str = ""  # digest of the prompt regions of a refused one

    def to_json(self) -> str:
        """One line of JSON; `taken` reads it."""
        return json.dumps(asdict(self))


def taken(event: StoredEvent) -> Taken:
    """What came of the request of an event."""
    table = json.loads(event.detail)
    return Taken(**{**table, "spent": Spent(**table["spent"])})


class Script:
    """The events of a log that are still to be followed.

    again: the run goes on, and asks again where a model could not be asked any longer.
    """

    def __init__(self, events: Iterable[StoredEvent] = (), again: bool = False):
        self._events: list[StoredEvent] = []
        for event in events:
            if event.kind == LEFT:
                self._events = self._events[: int(event.key)]
            elif event.kind in KINDS:
                self._events.append(event)
        self.again = again
        self.followed = 0  # how many events were
        ends = (n for n, e in enumerate(self._events) if e.kind == TOOK and taken(e).halted)
        whole = len(self._events)
        if again:
            del self._events[next(ends, whole) :]
        self.shortened = len(self._events) < whole  # and the log does not say so yet

    @property
    def next(self) -> StoredEvent | None:
        """What comes next; None where nothing is left to follow."""
        return self._events[self.followed] if self.followed < len(self._events) else None

    def follow(self) -> None:
        """The next one is done."""
        self.followed += 1

    def leave(self) -> None:
        """Forgets what is left, as it cannot be done as it was."""
        del self._events[self.followed :]
        self.shortened = True

    def took(self, name: str) -> Taken | None:
        """What came of a request; None where that did not take effect."""
        events = (e for e in self._events if e.kind == TOOK and e.key == name)
        return next(map(taken, events), None)
