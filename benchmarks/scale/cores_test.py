"""Tests that cores are shared equally, urgent work has its own, and no work is lost or done
twice."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

simpy = pytest.importorskip(
    "simpy", reason="PYTHONPATH=$(python3 bazel/make_cluster_site.py requirements_scale.lock)"
)

from benchmarks.scale.cores import Cores  # noqa: E402

SECONDS = st.floats(0.01, 5.0)
ARRIVALS = st.lists(st.tuples(st.floats(0.0, 5.0), SECONDS, st.booleans()), min_size=1, max_size=12)


def worked(number, arrivals, speeds=(1.0,)):
    """Returns when each of (arrival, seconds, urgent) ends, and the cores."""
    env = simpy.Environment()
    cores, ends = Cores(env, number, speeds), {}

    def one(name, at, seconds, urgent):
        yield env.timeout(at)
        yield cores.work(seconds, urgent)
        ends[name] = env.now

    for name, arrival in enumerate(arrivals):
        env.process(one(name, *arrival))
    env.run()
    return [ends[name] for name in range(len(arrivals))], cores


@pytest.mark.parametrize("count, seconds", [(1, 2.0), (2, 2.0), (3, 3.0), (8, 8.0)])
def test_equal_work_on_two_cores_ends_together(count, seconds):
    ends, _ = worked(2, [(0.0, 2.0, False)] * count)
    assert ends == pytest.approx([seconds] * count)


def test_urgent_work_has_a_core_and_the_rest_shares_the_other():
    ends, _ = worked(2, [(0.0, 1.0, True), (0.0, 1.0, False), (0.0, 1.0, False)])
    assert ends == pytest.approx([1.0, 1.5, 1.5])


def test_two_busy_cores_may_be_slower_than_one():
    assert worked(2, [(0.0, 1.0, False)], (1.0, 0.5))[0] == pytest.approx([1.0])
    assert worked(2, [(0.0, 1.0, False)] * 2, (1.0, 0.5))[0] == pytest.approx([2.0, 2.0])


@given(st.integers(1, 4), ARRIVALS)
def test_what_is_asked_for_is_computed_once(number, arrivals):
    ends, cores = worked(number, arrivals)
    total = sum(seconds for _, seconds, _ in arrivals)
    assert cores.worked == pytest.approx(total, rel=1e-6)
    assert all(e >= at + s - 1e-6 for e, (at, s, _) in zip(ends, arrivals, strict=True))
    assert max(ends) <= max(at for at, _, _ in arrivals) + total + 1e-6
    assert max(ends) >= total / number - 1e-6


@given(ARRIVALS)
def test_more_cores_end_nothing_later(arrivals):
    few, more = worked(1, arrivals)[0], worked(2, arrivals)[0]
    assert all(b <= a + 1e-6 for a, b in zip(few, more, strict=True))
