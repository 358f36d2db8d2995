"""Port: a candidate of another backend, with the decisions that this backend supports."""

from __future__ import annotations

import random
from dataclasses import dataclass

from search.core.candidate import Candidate
from search.loop.context import Context, GaveUp
from search.loop.generations import PORT


@dataclass(frozen=True, slots=True)
class Port:
    """The first parent's equations and decisions, for the child's backend.

    A race asks for it if the best candidate is of another backend.
    """

    name: str = PORT
    parents: int = 1
    remote: bool = False
    by_name: bool = True

    def propose(self, context: Context, rng: random.Random) -> Candidate | GaveUp:
        """The same kernel, without decisions that do not lower here."""
        parent = context.parents[0]
        note = f"brought over from {parent.candidate.backend}"
        return context.offer_variant(parent.variant, self.name, note)
