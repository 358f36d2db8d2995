"""Tests drawn schedules: the same seed gives the same ones, all are different and legal."""

import pytest

from backends.registry import backend, served_by, target
from backends.served import Served
from benchmarks.draws import LIBRARY, SIZES, draws, spec_of
from ir.autoschedule.autoschedule import autoschedule
from ir.lower.lower import lower

CHIP = target("h200")
TRITON, CUDA = (Served(b, served_by(CHIP, b)) for b in map(backend, CHIP.backends[:2]))


def test_every_kernel_of_the_library_has_sizes():
    assert set(SIZES) == {p.stem for p in LIBRARY.glob("*.kir")}


def test_a_seed_determines_what_is_drawn():
    first, again = draws("softmax", TRITON, 6, 3), draws("softmax", TRITON, 6, 3)
    assert [d.schedule for d in first] == [d.schedule for d in again]
    assert first[1:] != draws("softmax", TRITON, 6, 4)[1:]


@pytest.mark.parametrize("served", [TRITON, CUDA], ids=lambda served: served.name)
@pytest.mark.parametrize("kernel", ["softmax", "matmul_bias_gelu", "map_id"])
def test_schedules_differ_and_lower_and_the_first_is_the_autoschedule(kernel, served):
    found, machine = draws(kernel, served, 8, 0), served.machine
    assert len({d.digest for d in found}) == len({d.code for d in found}) == len(found) == 8
    assert found[0].digest not in found[0].code
    assert found[0].schedule == autoschedule(spec_of(kernel), machine, SIZES[kernel])
    for d in found:
        assert lower(spec_of(kernel), d.schedule, machine, SIZES[kernel]) == d.nest
