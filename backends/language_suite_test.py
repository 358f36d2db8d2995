"""The whole language through every backend: each case, names of all sorts, random specs, and sources
that are no kernels.

The product of cases, backends and targets is slow. Each time a case runs at a share of its places, so
that every case runs somewhere, and every backend has cases of all sorts.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest
from _pytest.mark import ParameterSet
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from backends.registry import backend, backend_names, target_names
from ir.print import spec_text
from testing.conformance.case import SCHEDULERS, Case, language_problems
from testing.conformance.hostile import hostile_problems
from testing.conformance.kernels import check_lines
from testing.conformance.names import name_cases
from testing.conformance.suite import each_time, language_cases, machines, served
from testing.conformance.verbs import verb_problems
from testing.samples.random_specs import sizes_for, specs

SLOW = pytest.mark.slow
SHARE_OF_NAMES = 3  # one in so many of the specs with names is tried each time


def _tried() -> Iterator[ParameterSet]:
    """Each case with each target of each backend that it is run or built on."""
    chips = [(n, b, m) for b in map(backend, backend_names()) for n, m in enumerate(machines(b))]
    for key, case in language_cases().items():
        at = [(n, b, m) for n, b, m in chips if served(case, m)]
        run = [(b.manifest.name, m.name) for n, b, m in at if n == 0 or case.everywhere]
        for number, tried, machine in at:
            runs = number == 0 or case.everywhere
            if not runs and not case.compiled:
                continue
            name = tried.manifest.name
            here = runs and each_time(key, run.index((name, machine.name)), len(run))
            yield pytest.param(
                *(name, machine, case, runs),
                id=f"{name}-{machine.name}-{key}",
                marks=[] if here else SLOW,
            )


TRIED = list(_tried())


@pytest.mark.parametrize(("name", "machine", "case", "run"), TRIED)
def test_a_case_is_right_or_refused_as_the_manifest_says(name, machine, case, run, tmp_path):
    assert list(language_problems(backend(name), machine, case, tmp_path, run)) == []


def random_specs(examples):
    """Gives a test so many specs, each with what it draws more."""

    def decorated(test):
        return settings(
            max_examples=examples,
            deadline=None,
            phases=(Phase.explicit, Phase.generate),  # to shrink would build hundreds of kernels
            suppress_health_check=list(HealthCheck),
        )(given(spec=specs(), data=st.data())(test))

    return decorated


def test_each_case_runs_each_time_on_some_backend():
    left = {p.values[2].name for p in TRIED} - {p.values[2].name for p in TRIED if not p.marks}
    assert left == set()


@pytest.mark.parametrize("name", backend_names())
@pytest.mark.parametrize("every_role", [False, pytest.param(True, marks=SLOW)])
def test_any_names_of_the_language_are_taken(name, every_role, tmp_path):
    served = backend(name)
    machine = machines(served)[-1]
    for number, case in enumerate(name_cases(served, every_role)):
        if number % SHARE_OF_NAMES and not every_role:
            continue
        folder = tmp_path / str(number)
        folder.mkdir()
        assert list(language_problems(served, machine, case, folder)) == [], case.text


@pytest.mark.parametrize("name", backend_names())
@random_specs(examples=2)
def test_random_specs_are_right_or_refused(name, tmp_path_factory, spec, data):
    _require_right_or_refused(name, tmp_path_factory, spec, data)


@SLOW
@pytest.mark.parametrize("name", backend_names())
@random_specs(examples=20)
def test_many_random_specs_are_right_or_refused(name, tmp_path_factory, spec, data):
    _require_right_or_refused(name, tmp_path_factory, spec, data)


def _require_right_or_refused(name, tmp_path_factory, spec, data):
    assume(spec.inputs)  # a kernel of constants alone is nothing to search for
    sizes = {size: 7 * n - 3 for size, n in data.draw(sizes_for(spec)).items()}
    scheduler = data.draw(st.sampled_from(sorted(SCHEDULERS)))
    case = Case("random", spec_text(spec) + check_lines((sizes,)), (), scheduler)
    folder = tmp_path_factory.mktemp("kernel")
    served = backend(name)
    found = list(language_problems(served, machines(served)[0], case, folder))
    assert found == [], case.text


@pytest.mark.parametrize("name", backend_names())
def test_a_source_that_is_no_kernel_is_refused(name, tmp_path):
    served = backend(name)
    machine = machines(served)[0]
    one, other = (
        language_cases()["reductions over several axes"],
        language_cases()["several launches"],
    )
    found = list(hostile_problems(served, machine, one, other.nest(machine), tmp_path))
    assert found == []


@pytest.mark.parametrize(
    ("name", "machine"),
    [
        pytest.param(name, machine, id=f"{name}-{machine.name}")
        for name in backend_names(for_tests=True)
        for machine in machines(backend(name))
    ],
)
def test_a_verb_of_the_manifest_has_an_effect_and_any_other_is_rejected(name, machine):
    assert list(verb_problems(backend(name), machine)) == []


@cache
def targets() -> frozenset[str]:
    return frozenset(target_names(for_tests=True))


@pytest.mark.parametrize("name", backend_names(for_tests=True))
def test_what_a_backend_is_tried_on_are_targets_that_list_it(name):
    served = backend(name)
    assert set(served.manifest.tried_on) <= targets()
    assert len(machines(served)) == len(served.manifest.tried_on) or not served.manifest.tried_on
