"""Port: a candidate of another backend, with its schedule as far as this backend renders it."""

from __future__ import annotations

import random
from dataclasses import dataclass

from search.core.candidate import Candidate
from search.loop.context import Context, GaveUp
from search.loop.generations import PORT


@dataclass(frozen=True, slots=True)
class Port:
    """The first parent's equations and decisions, for the backend that a child is for.

    A race asks for it where the best so far is another backend's.
    """

    name: str = PORT
    parents: int = 1
    remote: bool = False
    by_name: bool = True

    def propose(self, context: Context, rng: random.Random) -> Candidate | GaveUp:
        """The same kernel, of which decisions that do not lower here are left out."""
        parent = context.parents[0]
        note = f"brought over from {parent.candidate.backend}"
        return context.offer_variant(parent.variant, self.name, note)
