"""The script: the order in which a flow drew, asked and reported.

Answers and evaluations end in any order, and later requests depend on that order. So the log keeps
it. A continued or replayed run follows it and gets the same result.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from search.core.model_use import Spent
from search.core.stored import StoredEvent

DREW = "drew"  # a proposal was drawn
TOOK = "took"  # the result of a request took effect; the key is the request's name
TOLD = "told"  # an outcome took effect; the key is the candidate's
RESTED = "rested"  # the search waited for models that gave no answer
LEFT = "left"  # the order was abandoned; the key is the number of followed events
KINDS = (DREW, TOOK, TOLD, RESTED)


@dataclass(frozen=True, slots=True)
class Taken:
    """The result of a request, as logged."""

    operator: str  # empty for a request for better prompts
    spent: Spent
    asked: str  # the request in words
    why: str = ""  # why there is no child
    unanswered: bool = False  # because no model answered
    halted: bool = False  # because no model can be asked any more
    answer: str = ""  # the last refused answer, shortened
    prompt: str = ""  # digest of the prompt regions of a refused answer

    def to_json(self) -> str:
        """The result as one line of JSON, which `taken` reads."""
        return json.dumps(asdict(self))


def taken(event: StoredEvent) -> Taken:
    """The result of the request of an event."""
    table = json.loads(event.detail)
    return Taken(**{**table, "spent": Spent(**table["spent"])})


class Script:
    """The events of a log that remain to be followed.

    again: the run continues, and asks again if no model could be asked before.
    """

    def __init__(self, events: Iterable[StoredEvent] = (), again: bool = False):
        self._events: list[StoredEvent] = []
        for event in events:
            if event.kind == LEFT:
                self._events = self._events[: int(event.key)]
            elif event.kind in KINDS:
                self._events.append(event)
        self.again = again
        self.followed = 0  # number of followed events
        ends = (n for n, e in enumerate(self._events) if e.kind == TOOK and taken(e).halted)
        whole = len(self._events)
        if again:
            del self._events[next(ends, whole) :]
        self.shortened = len(self._events) < whole  # and this is not logged yet

    @property
    def next(self) -> StoredEvent | None:
        """The next event; None if none is left."""
        return self._events[self.followed] if self.followed < len(self._events) else None

    def follow(self) -> None:
        """Marks the next event as done."""
        self.followed += 1

    def leave(self) -> None:
        """Drops the remaining events, because they cannot be repeated."""
        del self._events[self.followed :]
        self.shortened = True

    def took(self, name: str) -> Taken | None:
        """The result of a request; None if it did not take effect."""
        events = (e for e in self._events if e.kind == TOOK and e.key == name)
        return next(map(taken, events), None)
