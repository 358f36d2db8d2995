"""Units: which matmuls run on the matrix unit, and which scatters use atomics."""

from __future__ import annotations

from collections.abc import Iterator

from ir.autoschedule.seeds import eight, integers, of_input
from ir.contraction import contraction, fills
from ir.machine import Machine
from ir.schedule import Decision
from ir.spec import Spec
from ir.variant.atomic import WIDE, scattered
from ir.variant.precision import narrowest
from ir.verify import facts


def units(spec: Spec, machine: Machine) -> Iterator[Decision]:
    """Yields decisions that put matmuls on the matrix unit, with operands in the narrow dtype of the inputs."""
    narrow, ranges = narrowest(spec), facts(spec).ranges
    for e in spec.equations:
        found = contraction(e)
        if found is None or not fills(found, ranges):
            continue
        sides = {of_input(spec, side) for side in (found.a, found.b)}
        if integers(spec, found):
            continue
        if eight(spec, machine, found):
            yield Decision("compute", e.target, (("unit", "matrix"),))
        elif narrow and machine.has_matrix(narrow[0]):
            yield Decision("compute", e.target, (("unit", "matrix"),))
            if sides != {narrow[0]}:
                yield Decision("precision", e.target, (("dtype", narrow[0]),))
        elif machine.has_matrix("f32"):
            yield Decision("compute", e.target, (("unit", "matrix"),))


def added(spec: Spec) -> tuple[Decision, ...]:
    """Decisions that make scatters use atomics, where that is about as exact."""
    tensors = facts(spec).tensors if scattered(spec) else {}
    return tuple(Decision("atomic", t) for t in scattered(spec) if tensors[t].dtype in WIDE)
