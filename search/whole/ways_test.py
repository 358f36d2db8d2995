"""The ways of a call: the usual one, and those that differ in one choice and have similar times."""

import pytest

from backends.backend import BackendError
from backends.compiled import Kernels
from backends.registry import backend_for, target
from ir.errors import KernelError
from ir.partition.choices import ONE
from search.whole.testing.two_ways import of_spec
from search.whole.ways import Way, other_ways, way


@pytest.fixture(scope="module")
def kernels():
    machine = target("null")
    return Kernels(machine, backend_for(machine), guessed=True)


def test_each_choice_that_came_up_can_go_the_other_way(kernels):
    usual = way(of_spec, kernels)
    (name,) = usual.choices
    assert name.startswith(ONE) and usual.calls == {name.removeprefix(ONE): 1}
    (other,) = other_ways(usual, of_spec, kernels)
    assert other.choices == {name: False} and sum(other.calls.values()) == 2


def test_a_call_takes_the_sum_over_its_steps(kernels):
    usual = way(of_spec, kernels)
    twice = Way({}, usual.call, None)
    (name,) = twice.calls
    assert twice.us({name: 2.5}) == 2.5


def test_closeness_is_of_what_differs_alone_and_tiny_parts_are_no_matter(kernels):
    usual = way(of_spec, kernels)
    (other,) = other_ways(usual, of_spec, kernels)
    (one,), (first, second) = usual.calls, other.calls
    times = {one: 10.0, first: 9.0, second: 3.0}
    assert other.closeness(usual, times) == pytest.approx(1.2)
    assert other.closeness(usual, {**times, one: 0.0}) == float("inf")
    assert usual.closeness(usual, times) == float("inf")  # they do not differ


def test_what_is_far_from_the_usual_way_is_left_out(kernels, monkeypatch):
    usual = way(of_spec, kernels)
    monkeypatch.setattr(
        kernels, "expected_us", lambda spec: 1.0 if len(spec.equations) > 1 else 0.9
    )
    assert other_ways(usual, of_spec, kernels) == []


@pytest.mark.parametrize("fault", [KernelError("no"), BackendError("emit", "no")])
def test_a_way_with_a_kernel_that_cannot_be_made_is_left_out(kernels, monkeypatch, fault):
    usual = way(of_spec, kernels)
    (other,) = other_ways(usual, of_spec, kernels)
    emit, refused = kernels.emit, other.call.kernels()[0]

    def refuse(spec):
        if spec == refused:
            raise fault
        return emit(spec)

    monkeypatch.setattr(kernels, "emit", refuse)
    fixed = {name: (one.call, one.before) for name, one in ((True, usual), (False, other))}

    def tried(_, choices):
        """A partition that tried none of its kernels."""
        (name,) = usual.choices
        return fixed[choices(name, lambda: True)]

    assert other_ways(usual, tried, kernels) == []
