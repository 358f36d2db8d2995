"""The starter kernels with the schedule that a search begins with: built without spills, with matrix
instructions where there is a matmul, and right by the thread interpreter at all check sizes."""

from __future__ import annotations

import pytest

from backends.cuda.testing.emulation import machine_of
from backends.cuda.testing.samples import backend
from backends.measure import compare, reference
from ir.autoschedule.autoschedule import autoschedule
from ir.lower.lower import lower
from ir.nest.nest import Dot
from ir.parse.parse import parse_workload
from ir.workload import LIBRARY

SEED = 5
KERNELS = sorted(p.stem for p in LIBRARY.glob("*.kir"))


def test_there_are_fourteen():
    assert len(KERNELS) == 14


@pytest.mark.parametrize("target", ["a100", "h200"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_starter_kernel_is_built_and_right(kernel, target, tmp_path):
    machine = machine_of(target)
    work = parse_workload((LIBRARY / f"{kernel}.kir").read_text(encoding="utf-8"), kernel)
    nest = lower(work.spec, autoschedule(work.spec, machine, work.tune), machine, work.tune)
    built = backend().build(backend().emit(nest, machine), nest, machine, tmp_path)
    assert built.figures["spills"] == 0
    dense = any(isinstance(s, Dot) for la in nest.launches for s in la.statements())
    matrix = sum(built.figures[f"{la.name}.mix.matrix"] for la in nest.launches)
    assert (matrix > 0) == dense
    for sizes in work.checks:
        known = reference(nest.spec, sizes, SEED)
        found = backend()._interpreted(nest, machine, sizes, known.inputs)
        assert found.keys() == {t.name for t in nest.spec.outputs}
        for output, array in found.items():
            compare(nest.spec, sizes, output, array, known)
