"""Outputs that are parts of larger tensors: parsed, printed, lowered, and refused if no kernel can
store them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from ir.errors import KernelError
from ir.estimate.traffic import traffic
from ir.literal import literal
from ir.nest.nest import Launch, Store
from ir.parse.parse import parse_spec
from ir.print import spec_text, tensor_type
from ir.reference.interpret import NestFault, interpret
from ir.spec import Number, Part
from testing.samples.right import require_right
from testing.samples.samples import (
    SMALL,
    WITH_REGISTERS,
    WITH_TF32,
    WITH_THREADS,
    lowered,
    spec_of,
    statements,
)

CHIP = dataclasses.replace(WITH_REGISTERS, engines=("bulk",))
PART = "f32[M, part(24, first=16, of=48)]"


def part(*equations: str, inputs: str = "x: f32[M, 24]", result: str = PART):
    return spec_of(*(equations or ("y[m, n] = x[m, n] * 2.0",)), inputs=inputs, result=result)


def test_the_text_of_a_part_reads_back():
    spec = part()
    (y,) = spec.outputs
    assert y.part == Part(1, 16, 48) and y.shape[1] == Number(24) and y.memory[1] == Number(48)
    assert tensor_type(y) == PART and parse_spec(spec_text(spec)) == spec
    assert literal(spec, {"M": 3}).outputs[0].part == y.part


def test_the_window_of_a_part_is_where_it_lies():
    whole = np.zeros((3, 48))
    (y,) = part().outputs
    whole[y.window] = 1.0
    assert np.flatnonzero(whole[0]).tolist() == list(range(16, 40)) and whole.sum() == 3 * 24
    (x,) = part().inputs
    assert x.memory == x.shape and np.zeros((3, 24))[x.window].shape == (3, 24)


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ("f32[M, part(24, first=16)]", "is no part of a larger tensor"),
        ("f32[M, part(24, 16, of=48)]", "is no part of a larger tensor"),
        ("f32[M, part(24, first=16, of=N)]", "is no part of a larger tensor"),
        ("f32[M, part(24, first=25, of=48)]", "is no part of its whole"),
        ("f32[M, part(24, first=-1, of=48)]", "is no part of a larger tensor"),
        ("f32[part(M, first=0, of=48), 24]", "is no part of its whole"),
        ("f32[part(3, first=0, of=4), part(24, first=0, of=48)]", "a part along two dimensions"),
    ],
)
def test_what_is_no_part_is_refused(result, message):
    with pytest.raises(KernelError, match=message):
        part(result=result)


def test_inputs_and_targets_of_scatters_are_whole():
    with pytest.raises(KernelError, match="the input `x` is a part of a larger tensor"):
        part(inputs=f"x: {PART}", result="f32[M, 24]")
    with pytest.raises(KernelError, match="`y`, a part of a larger tensor, is scattered into"):
        part(
            "y[idx[m], n] += x[m, n]",
            inputs="x: f32[M, 24], idx: i32[M]",
            result="f32[part(8, first=0, of=16), 24]",
        )


def test_a_part_is_stored_from_where_it_begins_in_memory_of_the_whole():
    nest = lowered(
        part(), "tile(n, size=8)", "place(n.outer, level=grid)", machine=SMALL, sizes={"M": 5}
    )
    (store,) = statements(nest, Store)
    assert [one.offset for one in store.region] == [Number(0), Number(16)]
    (y,) = (p for p in nest.launches[0].parameters if p.name == "y")
    assert (y.shape[1], y.extent[1]) == (Number(48), Number(24))
    require_right(nest, {"M": 5})


def test_what_is_written_beside_a_part_is_a_fault():
    grid = ("tile(m, size=2)", "place(m.outer, level=grid)")
    spec = part(result=PART.replace("of=48", "of=80"))
    nest = lowered(spec, *grid, machine=SMALL, sizes={"M": 5})

    def moved(launch: Launch, by: int) -> Launch:
        (store,) = (s for s in launch.statements() if isinstance(s, Store))
        rows, columns = store.region
        columns = dataclasses.replace(columns, offset=Number(by))
        other = dataclasses.replace(store, region=(rows, columns))
        body = tuple(other if s is store else s for s in launch.body)
        return dataclasses.replace(launch, body=body)

    x = {"x": np.ones((5, 24), np.float32)}
    assert interpret(nest, x, {"M": 5})["y"].shape == (5, 24)
    aside = tuple(moved(la, 40) for la in nest.launches)
    with pytest.raises(NestFault, match="is read where nothing was written"):
        interpret(dataclasses.replace(nest, launches=aside), x, {"M": 5})
    with pytest.raises(NestFault, match="written beside it"):
        interpret(dataclasses.replace(nest, launches=(*nest.launches, *aside)), x, {"M": 5})


def test_a_part_that_another_launch_reads_is_refused():
    spec = parse_spec(
        f'def f(x: f32[M, 24]) -> ({PART}, f32[M]):\n    """f"""\n'
        "    y[m, n] = x[m, n] * 2.0\n    z[m] = sum(y[m, n], n)\n    return y, z\n"
    )
    require_right(lowered(spec, machine=SMALL, sizes={"M": 5}), {"M": 5})
    with pytest.raises(KernelError, match="reads `y` from memory, a part of a larger tensor"):
        lowered(spec, "kernel(y)", machine=SMALL, sizes={"M": 5})


def test_a_part_that_is_stored_from_its_end_is_refused():
    scanned = part("y[m, n] = cumsum(x[m, n], n, reverse=True)")
    nest = lowered(scanned, machine=SMALL, sizes={"M": 5})
    require_right(nest, {"M": 5})
    with pytest.raises(KernelError, match="`y`, a part of a larger tensor, is stored from its end"):
        lowered(scanned, "mirror(y)", machine=WITH_THREADS, sizes={"M": 5})


def test_flattened_indices_keep_the_part_where_it_is():
    spec = spec_of(
        "y[b, c, h] = x[b, c, h] * 2.0",
        inputs="x: f32[B, 6, 5]",
        result="f32[B, part(6, first=3, of=11), 5]",
    )
    nest = lowered(spec, "flatten(c, inner=h)", machine=WITH_TF32, sizes={"B": 3})
    assert nest.variant.outputs[0].part == Part(1, 15, 55)
    require_right(nest, {"B": 3})
    with pytest.raises(KernelError, match="`y` is a part of a larger tensor along one of them"):
        lowered(spec, "flatten(b, inner=c)", machine=WITH_TF32, sizes={"B": 3})
    last = dataclasses.replace(
        spec, outputs=(dataclasses.replace(spec.outputs[0], part=Part(2, 1, 7)),)
    )
    nest = lowered(last, "flatten(b, inner=c)", machine=WITH_TF32, sizes={"B": 3})
    assert nest.variant.outputs[0].part == Part(1, 1, 7)
    require_right(nest, {"B": 3})


@pytest.mark.parametrize(
    ("own", "first", "whole", "fault"),
    [
        (64, 32, 128, ""),
        (48, 32, 128, "no divisor of its part's 48"),
        (64, 33, 128, "its rows begin 132 bytes aside"),
        (64, 32, 129, "a row of it has 516 bytes"),
    ],
)
def test_boxes_do_not_reach_beyond_a_part(own, first, whole, fault):
    spec = part(
        inputs=f"x: f32[M, {own}]", result=f"f32[M, part({own}, first={first}, of={whole})]"
    )
    lines = ("tile(m, size=16)", "place(m.outer, level=grid)", "tile(n, size=32)")
    lines += ("place(n.outer, level=grid)", "copy(y, by=bulk)")
    if fault:
        with pytest.raises(KernelError, match=fault):
            lowered(spec, *lines, sizes={"M": 64}, machine=CHIP)
        return
    nest = lowered(spec, *lines, sizes={"M": 64}, machine=CHIP)
    assert [s.bulk for s in statements(nest, Store)] == [True]
    require_right(nest, {"M": 64})


def test_a_part_has_the_bytes_of_what_is_its_own():
    whole, own = (
        lowered(one, machine=SMALL, sizes={"M": 64}) for one in (part(result="f32[M, 24]"), part())
    )
    found = [traffic(n.launches[0], SMALL, {"M": 64}).compulsory for n in (whole, own)]
    assert found[0] == found[1]
