"""The contract, held by every backend that the registry finds, for every target that lists it."""

import dataclasses

import pytest

from backends.backend import BackendError, Timing
from backends.registry import REGISTRY, backend, backend_names, target, target_names
from ir.spec import DTYPES
from testing.conformance.contract import CASES, problems, static_problems, trial

MACHINES = [target(name) for name in target_names(for_tests=True)]
SERVED = [
    pytest.param(name, machine, id=f"{name}-{machine.name}")
    for name in backend_names(for_tests=True)
    for machine in MACHINES
    if name in machine.backends
]
EVERYWHERE = (
    "contraction"  # the case that each target of a backend has each time; its first has all
)
TRIED = [
    pytest.param(
        *given.values,
        case[0],
        id=f"{given.id}-{case[0]}",
        marks=[]
        if case[0] == EVERYWHERE or number == 0 or SERVED[number - 1].values[0] != given.values[0]
        else pytest.mark.slow,
    )
    for number, given in enumerate(SERVED)
    for case in CASES
]


@pytest.mark.parametrize(("name", "machine"), SERVED)
def test_a_backend_says_what_it_can_do_here_in_the_known_words(name, machine):
    assert static_problems(backend(name), machine) == []


@pytest.mark.parametrize(("name", "machine", "case"), TRIED)
def test_a_backend_takes_a_kernel_from_nest_to_timeline(name, machine, case, tmp_path):
    served = backend(name)
    text = next(c[1] for c in CASES if c[0] == case)
    lacking = [d for d in DTYPES if f"{d}[" in text and d not in served.manifest.dtypes]
    if lacking:
        pytest.skip(f"`{name}` has no {', '.join(lacking)}")
    folder = tmp_path / "trial"
    folder.mkdir()
    assert problems(trial(case, served, machine, folder)) == []
    can = served.available(machine)
    if not can["correct_by"] or not can["time_kind"]:
        pytest.skip(f"emitted and built only: {can['why']}")


@pytest.mark.parametrize("name", backend_names(for_tests=True))
def test_every_backend_is_listed_by_a_target(name):
    assert any(name in machine.backends for machine in MACHINES)


class Spoiled:
    """A backend for tests, with one method replaced."""

    def __init__(self, **changed):
        (self.name,) = set(backend_names(for_tests=True)) - set(backend_names())
        self.inner = backend(self.name)
        self.changed = changed

    def __getattr__(self, name):
        return self.changed.get(name) or getattr(self.inner, name)


def found(tmp_path, **changed):
    spoiled = Spoiled(**changed)
    machine = next(m for m in MACHINES if spoiled.name in m.backends)
    folder = tmp_path / "trial"
    folder.mkdir()
    return problems(trial("map", spoiled, machine, folder))


def inner():
    return Spoiled().inner


def test_the_suite_sees_an_emission_that_is_never_the_same(tmp_path):
    texts = iter(range(100))
    seen = found(tmp_path, emit=lambda n, m: inner().emit(n, m) + str(next(texts)))
    assert "emit gave two texts for one nest" in seen


def test_the_suite_sees_a_build_that_writes_elsewhere(tmp_path):
    def build(source, nest, machine, folder):
        (tmp_path / "stray.o").write_text("")
        return inner().build(source, nest, machine, folder)

    assert f"build wrote outside its folder: {tmp_path}/stray.o" in found(tmp_path, build=build)


def test_the_suite_sees_a_build_that_takes_anything(tmp_path):
    def build(source, nest, machine, folder):
        text = "nest of" + source.partition("nest of")[2]
        return inner().build(text, nest, machine, folder)

    assert "a broken source was built" in found(tmp_path, build=build)


def test_the_suite_sees_the_wrong_stage(tmp_path):
    def build(source, nest, machine, folder):
        if not source.startswith("nest"):
            raise BackendError("emit", "no")
        return inner().build(source, nest, machine, folder)

    assert "a broken source gave stage 'emit', reason 'no'" in found(tmp_path, build=build)


def test_the_suite_sees_a_wrong_result(tmp_path):
    def run(*args):
        return {name: array + 1 for name, array in inner().run(*args).items()}

    assert any("output `y`" in p for p in found(tmp_path, run=run))


def test_the_suite_sees_a_modelled_time_that_differs(tmp_path):
    times = iter(range(1, 100))

    def time(*args):
        return Timing(us=next(times), kind="modelled")

    assert any("modelled times differ" in p for p in found(tmp_path, time=time))


@pytest.mark.parametrize(
    ("timing", "problem"),
    [
        (Timing(us=0.0, kind="modelled"), "the time is 0.0 us"),
        (Timing(us=float("nan"), kind="modelled"), "the time is nan us"),
        (Timing(us=1.0, kind="measured"), "the time is measured, `available` said modelled"),
        (Timing(1.0, "modelled", {}, {"dma": 1.5}), "the engine `dma` is busy for 1.5 of the time"),
        (Timing(1.0, "modelled", {"x": float("inf")}), "the figure `x` is inf"),
    ],
)
def test_the_suite_sees_a_time_that_cannot_be(tmp_path, timing, problem):
    assert problem in found(tmp_path, time=lambda *args: timing)


def test_the_suite_sees_a_timeline_that_is_not_written(tmp_path):
    seen = found(tmp_path, profile=lambda *args: inner().time(*args[:-1]))
    assert any("the timeline cannot be read" in p for p in seen)


def test_the_suite_sees_words_that_are_not_the_manifests():
    spoiled = Spoiled(available=lambda m: {"correct_by": "device", "time_kind": None, "why": ""})
    machine = next(m for m in MACHINES if spoiled.name in m.backends)
    first, second = static_problems(spoiled, machine)
    assert "available['correct_by'] is 'device'" in first
    assert "available['time_kind'] is None and `why` does not say why" in second


def test_the_suite_sees_a_machine_that_does_not_list_the_backend():
    spoiled = Spoiled()
    machine = next(m for m in MACHINES if spoiled.name in m.backends)
    assert static_problems(spoiled, dataclasses.replace(machine, backends=()))


def test_manifests_are_those_of_their_folders():
    for name in backend_names(for_tests=True):
        assert backend(name).manifest == REGISTRY.manifest(name)
