"""Under every policy a killed run, when resumed, finds the same as an undisturbed one."""

import os
import random
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from ir.edits.edits import neighbours
from ir.estimate.estimate import intensity
from ir.estimate.kernel_features import kernel_features
from ir.lower.lower import lower
from ir.parse.parse import parse_schedule
from ir.print import spec_text
from search.core.candidate import Candidate
from search.core.evaluation import Evaluation, Failure
from search.core.settings import Settings
from search.core.testing import CHIP, SIZES, SPEC
from search.loop.context import GaveUp
from search.loop.run import Search
from search.policy import NAMES, policy
from search.store.store import Store

ROOT = Path(__file__).parents[2]
EVALUATIONS = 36
KILLED_AFTER = 17


@dataclass(frozen=True)
class Change:
    """Changes a random decision; with two parents, one that only the second has."""

    name: str
    parents: int
    remote: bool = False

    def propose(self, context, rng):
        schedule = context.parents[-1].schedule
        edits = neighbours(context.spec, schedule, context.machine, context.sizes)
        for edit in rng.sample(edits, len(edits)):
            child = context.offer(edit.apply(schedule), self.name, str(edit))
            if isinstance(child, Candidate):
                return child
        return GaveUp("nothing is left")


@dataclass
class Drawn:
    """Draws times from keys; every fifth candidate is wrong."""

    most: int | None = None  # evaluations after which it dies
    made: int = 0
    context: str = "drawn"

    @property
    def environment(self):
        return {"contexts": self.contexts}

    @property
    def contexts(self):
        return {"tongue": self.context}

    def evaluate(self, candidates, seconds=None):
        order = list(enumerate(candidates))
        random.Random(self.most).shuffle(order)
        for position, c in order:
            if self.made == self.most:
                os.kill(os.getpid(), signal.SIGKILL)
            self.made += 1
            yield position, self.outcome(c)

    def outcome(self, c):
        if int(c.key, 16) % 5 == 0 and c.origin.parents:
            return Failure("check", "wrong", "as it happens")
        nest = lower(SPEC, parse_schedule(c.schedule), CHIP, SIZES)
        figures = intensity(nest, CHIP, SIZES) | kernel_features(nest, CHIP, SIZES)
        return Evaluation(100 + int(c.key, 16) % 40 / 4, "modelled", "emulator", figures=figures)


def search(name, store, evaluator, run=None):
    settings = Settings(
        "scaled_matmul",
        spec_text(SPEC),
        "chip",
        ("tongue",),
        SIZES,
        evaluations=EVALUATIONS,
        seed=1,
        roofline_share=2.0,
        policy=name,
        measures=("on_chip", "memory", "algorithm"),
    )
    operators = {o.name: o for o in (Change("one", 1), Change("two", 2))}
    return Search(
        settings,
        evaluator,
        store,
        machines={"tongue": CHIP},
        policy=policy(name),
        operators=operators,
        run=run,
    )


def result(outcome):
    """Everything that must not depend on a kill. The order of answers differs between runs, too."""
    return {
        "told": [(key, str(found)) for key, found in outcome.outcomes.items()],
        "origins": [(c.key, c.origin) for c in outcome.graph],
        "archive": [(e.cell, e.candidate.key, e.fitness) for e in outcome.archive],
        "best": (outcome.best.key, outcome.evaluation.us),
        "end": (outcome.evaluations, outcome.stopped_because),
    }


# Plain TPE has children of the root only, and single changes give too few of them.
# `map_elites:uniform` is another name of `map_elites`.
OTHERS = [name for name in NAMES if name not in ("tpe", "map_elites:uniform")]

# Policies whose archive is from a package: importing it takes the killed process seconds.
VARIANTS = ("map_elites", "map_elites:fitness", "map_elites:gradient")


@pytest.mark.parametrize(
    "name",
    [
        *(
            pytest.param(name, marks=pytest.mark.slow) if name in VARIANTS else name
            for name in OTHERS
        ),
        "islands,count=2,every=1",
        "mcts,value=mean",
    ],
)
def test_a_run_that_was_killed_goes_on_as_if_it_had_not_been(name, tmp_path):
    whole = Store(str(tmp_path / "whole.db"))
    uninterrupted = result(search(name, whole, Drawn()).run())
    whole.close()
    assert uninterrupted["end"][0] == EVALUATIONS
    path = str(tmp_path / "killed.db")
    killed = subprocess.run(
        [sys.executable, "-m", "search.policy.resume_test", name, path, str(KILLED_AFTER)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert killed.returncode == -signal.SIGKILL
    store, evaluator = Store(path), Drawn()
    (run,) = store.runs()
    assert len(store.load(run).outcomes) == KILLED_AFTER
    assert result(search(name, store, evaluator, run).run()) == uninterrupted
    assert evaluator.made == EVALUATIONS - KILLED_AFTER
    store.close()


if __name__ == "__main__":
    search(sys.argv[1], Store(sys.argv[2]), Drawn(most=int(sys.argv[3]))).run()
