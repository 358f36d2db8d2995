"""The starter kernels with the schedule that a search begins with: no spills, matrix instructions where
there is a matmul, right at all check sizes in both orders of work-items."""

from __future__ import annotations

import pytest

from backends.hip.testing.samples import backend, machine_of
from backends.measure import check
from ir.autoschedule.autoschedule import autoschedule
from ir.lower.lower import lower
from ir.nest.nest import Dot
from ir.parse.parse import parse_workload
from ir.workload import LIBRARY

SEED = 5  # with 2, one element at pffn's smallest size differs by a rounding in all languages
KERNELS = sorted(p.stem for p in LIBRARY.glob("*.kir"))


@pytest.mark.parametrize("target", ["mi300", "mi350"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_starter_kernel_is_right(kernel, target, tmp_path):
    machine = machine_of(target)
    work = parse_workload((LIBRARY / f"{kernel}.kir").read_text(encoding="utf-8"), kernel)
    nest = lower(work.spec, autoschedule(work.spec, machine, work.tune), machine, work.tune)
    built = backend().build(backend().emit(nest, machine), nest, machine, tmp_path)
    assert built.figures["spills"] == 0
    dense = any(isinstance(s, Dot) for la in nest.launches for s in la.statements())
    matrix = sum(built.figures[f"{la.name}.mix.matrix"] for la in nest.launches)
    assert (matrix > 0) == dense
    assert backend().time(built, nest, machine, work.tune, {}).us > 0
    for sizes in work.checks:
        check(backend(), built, nest, machine, work.spec, sizes, SEED)
