"""How long a search waits for a slow model, compared with a search in generations, on a test's
clock."""

import heapq
import random

import pytest

from search.core.settings import REQUESTS
from search.loop.testing import Climb, Pick, made
from search.store.forgetful import Forgetful

EVALUATIONS, ROOTS, BATCH = 26, 2, 8
ANSWER, EVALUATION = 180.0, 1.0  # seconds
WORKERS = 2
AT_ONCE = 4  # requests in flight of a search in generations


def in_generations(share, rng):
    """Seconds of a search that asks a whole generation, waits for all its answers and then evaluates
    it, as searches with models did; each answer is taken."""
    seconds, left = ROOTS / WORKERS * EVALUATION, EVALUATIONS - ROOTS
    while left:
        count = min(BATCH, left)
        slots = [0.0] * AT_ONCE
        for _ in range(sum(rng.random() < share for _ in range(count))):
            heapq.heappush(slots, heapq.heappop(slots) + ANSWER)
        seconds += max(slots) + -(-count // WORKERS) * EVALUATION
        left -= count
    return seconds


class Others:
    """An operator besides the model, with different children."""

    name, parents, remote = "pick", 1, False

    def __init__(self, given):
        self.given = given

    def propose(self, context, rng):
        child = Pick().propose(context, rng)
        while child.key in self.given:
            child = Pick().propose(context, rng)
        return child


def as_they_come(share, seed):
    """Seconds of a flow that asks models."""
    found = made(
        Forgetful(),
        policy=Climb(*(("model",) if share == 1 else ("model", "pick"))),
        workers=WORKERS,
        seconds=lambda: ANSWER,
        evaluating=lambda: EVALUATION,
        evaluations=EVALUATIONS,
        requests=REQUESTS,
        seed=seed,
    )
    found.model.given = set()
    others = {"pick": Others(found.model.given)} if share < 1 else {}
    found.search.operators = {"model": found.model, **others}
    assert found.run().evaluations == EVALUATIONS
    return found.clock.now


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_26_evaluations_take_less_than_two_fifths_of_the_time(share):
    """The mean over seeds. share: the share of proposals for the model."""
    before = [in_generations(share, random.Random(seed)) for seed in range(99)]
    now = [as_they_come(share, seed) for seed in range(6)]
    assert sum(now) / len(now) <= 0.4 * sum(before) / len(before)
