"""Recall returns the elites of the nearest runs first."""

from dataclasses import replace

import pytest

from ir.parse.parse import parse_spec
from ir.print import spec_text
from search.core.candidate import Candidate, Origin
from search.core.evaluation import Evaluation, Failure
from search.core.lowered import schedule_of
from search.core.testing import SETTINGS, SIZES
from search.store.forgetful import Forgetful
from search.store.store import Store
from search.warm_start.recall import recalled

BACKENDS = {"chip": ("tongue",), "cousin": ("tongue", "other"), "stranger": ("third",)}


@pytest.fixture
def store(tmp_path):
    return Store(str(tmp_path / "runs.db"))


def keep(store, target="chip", schedule="s", us=(3.0, 2.0), **sizes):
    """A run whose candidates took these times, None for a failure; the last has `schedule`."""
    settings = replace(SETTINGS, target=target, sizes={**SIZES, **sizes})
    run = store.start(settings, {})
    made = [
        Candidate(
            "f",
            schedule if n == len(us) else f"{schedule}{n}",
            target,
            "tongue",
            origin=Origin("first"),
        )
        for n in range(1, len(us) + 1)
    ]
    store.asked(run, 0, made, 0.0)
    for c, time in zip(made, us):
        lost = Failure("check", "wrong", "x")
        outcome = Evaluation(time, "simulated", "simulator") if time else lost
        store.evaluated(run, c.key, "here", outcome, 0.0)
    return run


def schedules(store, **changed):
    return [f.schedule for f in recalled(store, replace(SETTINGS, **changed), BACKENDS.get)]


def test_an_empty_store_recalls_nothing(store):
    assert schedules(store) == []


def test_the_fastest_that_is_correct_is_recalled(store):
    run = keep(store, schedule="mine", us=(3.0, None, 2.0))
    (found,) = recalled(store, SETTINGS, BACKENDS.get)
    assert (found.schedule, found.us, found.run, found.edited) == ("mine", 2.0, run, False)
    keep(store, schedule="lost", us=(None,))
    assert schedules(store) == ["mine"]


def test_the_same_target_comes_first_then_one_with_the_same_backend_then_any(store):
    for target in ("stranger", "chip", "cousin"):
        keep(store, target=target, schedule=target)
    assert schedules(store) == ["chip", "cousin", "stranger"]
    assert schedules(store, target="cousin") == ["cousin", "chip", "stranger"]


def test_nearer_sizes_come_first(store):
    keep(store, schedule="twice", M=128)
    keep(store, schedule="far", M=4096)
    keep(store, schedule="same")
    keep(store, schedule="half", M=32, N=16)
    assert schedules(store) == ["same", "twice", "half"]


def test_the_same_schedule_is_recalled_once_and_another_kernel_never(store):
    keep(store, schedule="a")
    keep(store, target="cousin", schedule="a")
    assert schedules(store) == ["a"]
    assert schedules(store, kernel="another") == []


def of_network(m, k, name, line="y[m] = sum(x[m, k] * w[k], k)", dtype="f32"):
    """Settings of a search for a kernel of a network, whose sizes are numbers."""
    spec = parse_spec(
        f'def {name}(x: {dtype}[{m}, {k}], w: {dtype}[{k}]) -> {dtype}[{m}]:\n    """Y."""\n'
        f"    {line}\n    return y\n"
    )
    return replace(SETTINGS, kernel=name, spec=spec_text(spec), sizes={})


def found_for(store, settings, us=2.0, schedule="tile(m, size=4)", **more):
    text = f"schedule({settings.kernel})\n\n{schedule}\n"
    made = Candidate(
        **{
            "variant": settings.spec,
            "schedule": text,
            "target": "chip",
            "backend": "tongue",
            **more,
        }
    )
    run = store.start(settings, {})
    store.asked(run, 0, [made], 0.0)
    store.evaluated(run, made.key, "here", Evaluation(us, "simulated", "simulator"), 0.0)
    return run


@pytest.mark.parametrize("kept", [lambda path: Store(str(path / "n.db")), lambda _: Forgetful()])
def test_a_kernel_of_the_same_structure_is_recalled_the_nearest_sizes_first(kept, tmp_path):
    store = kept(tmp_path)
    wanted = of_network(64, 128, "y_00000001")
    far = found_for(store, of_network(4096, 8192, "y_00000002"))
    near = found_for(store, of_network(64, 256, "y_00000003"), schedule="tile(m, size=8)")
    for other in (
        of_network(64, 256, "z_00000004"),  # it has other outputs
        of_network(64, 256, "y_00000005", "y[m] = max(x[m, k] * w[k], k)"),
        of_network(64, 256, "y_00000006", dtype="bf16"),
        of_network(64, 256, "y"),  # not of a network
    ):
        found_for(store, other)
    found_for(store, of_network(64, 512, "y_00000007"), source="edited")
    first, second = recalled(store, wanted, BACKENDS.get)
    assert (first.run, second.run) == (near, far) and first.variant == wanted.spec
    assert str(schedule_of(first.schedule)).splitlines()[0] == "schedule(y_00000001)"
    own = found_for(store, wanted, 9.0, "tile(m, size=2)")
    assert [f.run for f in recalled(store, wanted, BACKENDS.get)] == [own, near, far]
