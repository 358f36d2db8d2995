"""The result of a search for a call: a wrong kernel is not used, and one without a result keeps its
seed schedule."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from backends.registry import backend_for, served_by, target
from backends.served import Served
from ir.errors import KernelError
from search.cli.network import found_call, require_right
from search.core.evaluation import Failure
from search.whole.plan import CallPlan
from search.whole.testing.two_ways import of_spec
from search.whole.times import WholeTimes

WRONG, LATE = Failure("check", "wrong", "it is wrong"), Failure("check", "timeout", "it is late")


@pytest.fixture(scope="module")
def plan():
    """A call with two ways, of one kernel and of two; that with seed schedules is marked as
    measured."""
    machine = target("null")
    backend = backend_for(machine)
    made = CallPlan.of(of_spec, [Served(backend, served_by(machine, backend))])
    return replace(made, measured={n: WholeTimes(10.0 + n, 10.0 + n, {}) for n in range(2)})


def failed(plan, way, outcome):
    """The search for the first kernel of a way, whose only candidate failed; None: there was no
    time for one."""
    name = plan.ways[way].call.kernels()[0].name
    settings = SimpleNamespace(kernel=name, target="null")
    tried = {} if outcome is None else {"first": outcome}
    first = SimpleNamespace(key="first")
    made = SimpleNamespace(best=None, outcomes=tried, first=first, settings=settings, run="run")
    return SimpleNamespace(outcome=made, problem=SimpleNamespace(title=f"{name} on null"))


@pytest.mark.parametrize("outcome", [None, LATE])
def test_a_kernel_of_which_nothing_is_known_to_be_wrong_keeps_its_seed_schedule(plan, outcome):
    ended = [failed(plan, 0, outcome)]
    found = found_call(plan, ended, print)
    assert found.way == plan.ways[0] and len(found.kernels) == 1
    require_right(found, ended)


def test_a_way_with_a_wrong_kernel_is_left_out(plan):
    ended = [failed(plan, 0, WRONG)]
    found = found_call(plan, ended, print)
    assert found.way == plan.ways[1] and len(found.kernels) == 2
    require_right(found, ended)


def test_where_all_ways_have_a_wrong_kernel_that_is_an_error(plan):
    ended = [failed(plan, way, WRONG) for way in range(2)]
    found = found_call(plan, ended, print)
    assert not found.kernels
    with pytest.raises(KernelError, match="no candidate of `.* on null` is correct"):
        require_right(found, ended)
