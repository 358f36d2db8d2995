"""A candidate that a glance shows to be slow ends there; all others are checked as usual."""

import time

import pytest

from backends.backend import BackendError
from backends.gpu.apart import apart
from search.core.candidate import Origin
from search.core.evaluation import Evaluation
from search.evaluator import glance, worker
from search.evaluator.glance import LEAST_PATIENCE, TOO_SLOW, Fastest
from search.evaluator.stages import Stages
from search.evaluator.testing.acting import Glancing, Tongue, bench, candidate

FASTEST_US = 8.0
FASTEST = Fastest(FASTEST_US)
HOURS = 7200.0  # seconds; longer than any test
CHILD = Origin("mutate", ("seed",))


def evaluated(backend, folder, source=None, origin=CHILD, fastest=FASTEST):
    """The outcome of a candidate, and its stages."""
    entered = []
    stages = Stages.of(bench(lambda: backend))
    asked = candidate(source, origin=origin)
    return stages.evaluate(asked, folder, entered.append, fastest), entered


def test_what_is_much_slower_than_the_fastest_is_not_run_to_be_checked(tmp_path):
    backend = Glancing(FASTEST_US * TOO_SLOW + 0.01)
    found, entered = evaluated(backend, tmp_path)
    assert (found.stage, found.kind, found.us) == ("time", "slow", backend.shown)
    assert found.reason == "it takes about 10.01 us, 1.25 times as long as the fastest"
    assert backend.runs == 0 and backend.enough == [FASTEST_US * TOO_SLOW]
    assert entered == ["verify", "emit", "build", "time"]


def test_what_is_about_as_fast_is_checked_and_timed_as_ever(tmp_path):
    backend = Glancing(FASTEST_US * TOO_SLOW)
    found, entered = evaluated(backend, tmp_path)
    assert found.us == 9.0 and found.errors and backend.runs > 3
    assert entered == ["verify", "emit", "build", "time", "check", "time"]


@pytest.mark.parametrize(
    "case",
    [
        dict(source="good"),  # by someone else
        dict(origin=Origin("first")),  # other times are compared with it
        dict(fastest=None),  # none was correct yet
        dict(backend=Glancing(1e9, time_kind="modelled")),
        dict(backend=Tongue()),  # it has no glance
    ],
)
def test_all_else_is_checked_however_slow_it_is(tmp_path, case):
    backend = case.pop("backend", None) or Glancing(1e9)
    found, entered = evaluated(backend, tmp_path, **case)
    assert isinstance(found, Evaluation) and found.errors
    assert entered == ["verify", "emit", "build", "check", "time"]


def test_a_fault_at_a_glance_is_a_fault(tmp_path):
    class Faulty(Glancing):
        def glance(self, *args):
            raise BackendError("time", "an illegal memory access")

    found, _ = evaluated(Faulty(), tmp_path)
    assert (found.stage, found.kind) == ("time", "refused")


def test_kernels_that_cannot_change_their_inputs_are_given_what_cannot_be_written(tmp_path):
    seen = []

    class Leaving(Glancing):
        def leaves_inputs(self, machine):
            return True

        def run(self, built, nest, machine, sizes, inputs):
            seen.extend(inputs.values())
            return super().run(built, nest, machine, sizes, inputs)

        def glance(self, built, nest, machine, sizes, inputs, enough_us):
            seen.extend(inputs.values())
            return super().glance(built, nest, machine, sizes, inputs, enough_us)

    found, _ = evaluated(Leaving(), tmp_path)
    assert isinstance(found, Evaluation)
    assert seen and not any(array.flags.writeable for array in seen)
    assert len({array.ctypes.data for array in seen}) < len(seen), "the same are given again"


def _asleep(place, seconds):
    time.sleep(seconds)


class Building(Glancing):
    """Builds in a separate process."""

    def __init__(self, seconds, **more):
        super().__init__(FASTEST_US, **more)
        self.seconds = seconds

    def build(self, source, nest, machine, folder):
        apart(_asleep, self.seconds, seconds=HOURS, stage="build", folder=folder)
        return super().build(source, nest, machine, folder)


@pytest.fixture
def impatient(monkeypatch):
    """As if builds of fast kernels took a fifth of a second."""
    monkeypatch.setattr(glance, "LEAST_PATIENCE", 0.2)
    return Fastest(FASTEST_US, 0.05)


def test_a_build_that_takes_many_times_as_long_as_those_of_fast_kernels_is_given_up(
    tmp_path, impatient
):
    found, entered = evaluated(Building(HOURS), tmp_path, fastest=impatient)
    assert (found.stage, found.kind) == ("build", "timeout") and found.by_chance
    assert found.reason == "it was still at it after 0.2 s"
    assert entered == ["verify", "emit", "build"] and worker._sound(found)


@pytest.mark.parametrize(
    "case",
    [
        dict(source="good"),  # by someone else
        dict(origin=Origin("first")),
        dict(fastest=FASTEST),  # the build time of a fast kernel is unknown
        dict(time_kind="modelled"),
    ],
)
def test_all_else_is_built_however_long_it_takes(tmp_path, impatient, case):
    backend = Building(0.5, **{n: case.pop(n) for n in ("time_kind",) if n in case})
    found, _ = evaluated(backend, tmp_path, **{"fastest": impatient, **case})
    assert isinstance(found, Evaluation)


def test_patience_is_a_multiple_of_what_fast_kernels_take_and_some_seconds_at_least():
    assert Fastest(8.0).patience is None
    assert Fastest(8.0, 0.1).patience == LEAST_PATIENCE
    assert Fastest(8.0, 3.0).patience == 12.0
