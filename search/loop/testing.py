"""An operator for tests."""

from __future__ import annotations

import random

from ir.edits.edits import neighbours
from search.core.candidate import Candidate
from search.loop.context import Context, GaveUp


class Pick:
    """An operator that changes one decision at random."""

    name, parents, remote = "pick", 1, False

    def propose(self, context: Context, rng: random.Random) -> Candidate | GaveUp:
        """The first change of a random order that is new and lowers."""
        schedule = context.parents[0].schedule
        edits = neighbours(context.spec, schedule, context.machine, context.sizes)
        for edit in rng.sample(edits, len(edits)):
            child = context.offer(edit.apply(schedule), "pick", str(edit))
            if isinstance(child, Candidate):
                return child
        return GaveUp("nothing is left")
