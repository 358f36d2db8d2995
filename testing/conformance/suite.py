"""The cases of the language suite, and what runs them for one backend."""

from __future__ import annotations

import re
from functools import cache

from backends.backend import Backend
from backends.registry import served_by, target, target_names
from ir.machine import Machine
from machines.gpu.limits import cache_hints
from testing.conformance.case import Case
from testing.conformance.decisions import decision_cases
from testing.conformance.equations import equation_cases
from testing.conformance.functions import function_cases, special_cases
from testing.conformance.parts import part_cases

# Families of cases that differ in a dtype or in the schedule alone. Each is lowered alike for several
# backends, and the interpreter of thread programs runs all cases each time.
ALIKE = (
    *("functions of", "comparisons of", "dtype", "reductions of", "scans of", "cummin of"),
    *("cummax of", "special rows", "gathers by", "a search in", "recurrence", "matmul of"),
    *("matmul,", "atomic", "windows"),
)
SHARE = 12  # at one in so many of its places a case of a family runs each time
OWN_SHARE = 4  # and any other case


@cache
def language_cases() -> dict[str, Case]:
    """Every case that does not depend on the backend, by its name."""
    cases = (
        *(*function_cases(), *special_cases(), *equation_cases()),
        *(*decision_cases(), *part_cases()),
    )
    named = {case.name: case for case in cases}
    assert len(named) == len(cases), "two cases have one name"
    return named


def each_time(key: str, place: int, places: int) -> bool:
    """Whether a case of `language_cases` runs each time at a place, else with the slow tests.

    places: backends and targets that the case runs on, in their order.  place: which of them. Neighbours
    of a family run at different places: each backend has a share of each family, and each case runs
    somewhere.
    """
    share = SHARE if key.startswith(ALIKE) else OWN_SHARE
    return (list(language_cases()).index(key) + place) % min(share, places) == 0


def machines(backend: Backend) -> tuple[Machine, ...]:
    """The targets that the suite runs a backend on: those that its manifest names, else all."""
    manifest = backend.manifest
    names = manifest.tried_on or target_names(for_tests=True)
    found = (m for m in map(target, names) if manifest.name in m.backends)
    return tuple(served_by(m, backend) for m in found)


def served(case: Case, machine: Machine) -> bool:
    """Whether a case's decisions are legal on a machine of this sort, and its backend renders
    them."""
    if case.warp not in (0, machine.warp):
        return False
    if not set(re.findall(r"(?:hint|last)=(\w+)", case.schedule)) <= set(cache_hints(machine)):
        return False
    if "copy" in case.verbs and "bulk" not in machine.engines:
        return False
    if case.verbs & {"keep", "mirror", "serpentine"} - machine.model.verbs:
        return False
    families = machine.details.get("gpu", {}).get("instructions")
    if "instruction" in case.verbs and not families:
        return False
    if case.of_tensors and machine.stages_of_loops or not all(map(machine.renders, case.verbs)):
        return False
    return "register" in machine.spaces or not case.registers
