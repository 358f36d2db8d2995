"""What a glance shows to be slow ends there; all else is checked as ever."""

import pytest

from backends.backend import BackendError
from search.core.candidate import Origin
from search.core.evaluation import Evaluation
from search.evaluator.glance import TOO_SLOW
from search.evaluator.stages import Stages
from search.evaluator.testing.acting import Glancing, Tongue, bench, candidate

FASTEST_US = 8.0
CHILD = Origin("mutate", ("seed",))


def evaluated(backend, folder, source=None, origin=CHILD, fastest_us=FASTEST_US):
    """What becomes of a candidate, and the stages that it entered."""
    entered = []
    stages = Stages.of(bench(lambda: backend))
    asked = candidate(source, origin=origin)
    return stages.evaluate(asked, folder, entered.append, fastest_us), entered


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
        dict(source="good"),  # somebody else's
        dict(origin=Origin("first")),  # times are compared with it
        dict(fastest_us=None),  # nothing was correct yet
        dict(backend=Glancing(1e9, time_kind="modelled")),
        dict(backend=Tongue()),  # it cannot
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
