"""Register limits: the compiler keeps them, edits propose them, and a text that drops one is
refused."""

from __future__ import annotations

import re

import pytest

from backends.backend import BackendError
from backends.hip.backend import program, spelled
from backends.hip.bounds import waves_per_eu
from backends.hip.testing.samples import CASES, backend, machine_of, work_of
from backends.measure import check
from ir.edits.edits import neighbours
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.parse.parse import parse_schedule
from ir.sizes import bind
from testing.slow import slow

MI300 = machine_of("mi300")


def schedule(name, more):
    return parse_schedule(f"schedule({work_of(name).spec.name})\n{CASES[name][1]}\n{more}\n")


def limited(limit, machine=MI300):
    work = work_of("ring")
    line = f"registers(y, limit={limit})" if limit else ""
    return lower(work.spec, schedule("ring", line), machine, work.tune)


@pytest.mark.parametrize("target", [slow("mi300"), "mi350"])
def test_the_compiler_keeps_a_limit_and_results_stay_right(target, tmp_path):
    machine, figures, work = machine_of(target), {}, work_of("ring")
    for limit in (0, 64, 56):
        nest, folder = limited(limit, machine), tmp_path / str(limit)
        folder.mkdir()
        source = backend().emit(nest, machine)
        assert (f"__maxnreg__({limit})" in source) == bool(limit)
        built = backend().build(source, nest, machine, folder)
        figures[limit] = built.figures[f"{nest.launches[0].name}.registers"]
        check(backend(), built, nest, machine, work.spec, work.checks[-1], seed=3)
    assert figures[56] <= 56 and figures[64] <= 64


def test_a_large_limit_gives_more_than_the_bounds_would():
    sizes = bind(work_of("ring").spec, dict(work_of("ring").tune))
    waves = {}
    for limit in (0, 512, 128, 32):
        (one,) = program(spelled(limited(limit)), MI300).launches
        waves[limit] = waves_per_eu(one, sizes, MI300)
    assert waves[0] > waves[512] == 1 and waves[128] == 4 and waves[32] == 8


def test_a_limit_that_does_not_suffice_is_told_as_spills(tmp_path):
    nest = limited(32)
    built = backend().build(backend().emit(nest, MI300), nest, MI300, tmp_path)
    launch = nest.launches[0].name
    assert built.figures[f"{launch}.registers"] <= 32
    assert built.figures["spills"] > 0 and built.figures[f"{launch}.vector_spills"] > 0


def test_a_text_that_drops_its_limit_is_refused(tmp_path):
    nest = limited(40)
    source = re.sub(r"\(256, \d\) __maxnreg__\(40\)", "(256, 1)", backend().emit(nest, MI300))
    assert "__maxnreg__" not in source
    with pytest.raises(BackendError, match="has .* registers; its schedule allows 40") as seen:
        backend().build(source, nest, MI300, tmp_path)
    assert seen.value.stage == "build"


@pytest.mark.parametrize("limit", [24, 100, 520])
def test_limits_are_those_of_the_machine(limit):
    with pytest.raises(KernelError, match="no number of registers") as seen:
        limited(limit)
    assert seen.value.allowed == "multiples of 8 from 32 to 512"


@pytest.mark.parametrize("target", ["mi300", "mi350"])
def test_edits_propose_limits(target):
    """256 threads are one wavefront on each SIMD: with n blocks, each has 512 / n registers."""
    work, machine = work_of("ring"), machine_of(target)
    found = neighbours(work.spec, schedule("ring", "threads(y, count=256)"), machine, work.tune)
    limits = {e.decision.number("limit") for e in found if e.decision.verb == "registers"}
    assert {256, 168, 128, 96, 80, 72, 64} <= limits
    assert all(limit % 8 == 0 and limit < 512 for limit in limits)
