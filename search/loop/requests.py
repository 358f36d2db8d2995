"""Requests: what the models of a run were asked, as far as later prompts tell of it.

A generation's requests are written one after another, each knowing those before it, and answered
together. Those that came to nothing are logged with their generation, so that a resumed run writes
the same prompts again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from search.core.stored import StoredEvent, StoredRun
from search.loop.context import GaveUp, Halted, Memory, Refused

REFUSED = "refused"  # the kind of the event


class Requests:
    """The requests of one run. record: the stored run that goes on, None for a new one."""

    def __init__(self, record: StoredRun | None = None):
        self._refused: dict[tuple[int, Refused], None] = {}
        for event in record.events if record else ():
            if event.kind == REFUSED:
                self._refused[int(event.key), Refused(**json.loads(event.detail))] = None
        self.memory = Memory()

    def begin(self, generation: int) -> None:
        """A generation is asked, perhaps again: it knows the refusals of those before it."""
        known = tuple(refused for of, refused in self._refused if of < generation)
        self.memory = Memory(generation, (), known)

    def add(self, words: str) -> None:
        """A request of the generation was written."""
        earlier = self.memory
        self.memory = Memory(earlier.generation, (*earlier.requested, words), earlier.refused)

    def close(self, unmade: Sequence[GaveUp | Halted], seconds: float) -> Iterator[StoredEvent]:
        """What to log of the generation. unmade: why nothing came of requests, in their order."""
        for why in unmade:
            if isinstance(why, GaveUp) and why.asked and not why.unanswered:
                refused = Refused(why.asked, why.reason)
                place = self.memory.generation, refused
                if place not in self._refused:
                    self._refused[place] = None
                    detail = json.dumps({"asked": why.asked, "reason": why.reason})
                    yield StoredEvent(REFUSED, str(self.memory.generation), seconds, detail)
