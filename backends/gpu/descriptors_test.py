"""Tensors as TMA is told of them."""

from dataclasses import replace

import pytest

from backends.backend import BackendError
from backends.gpu.blocks import Blocks
from backends.gpu.descriptors import describe
from backends.gpu.plain_rules import RULES
from backends.gpu.program import tile_program
from backends.gpu.text import scalar_text
from backends.gpu.tile import BlockWidth, Describable, Name
from ir.nest.nest import Launch, Load, Slice, Store
from ir.spec import Number, Size
from testing.samples.samples import WITH_THREADS, lowered, spec_of

SIZES = dict(B=2, M=64, K=64, N=64)
BATCHED = spec_of(
    "acc[b, m, n] = sum(f32(x[b, m, k]) * f32(w[k, n]), k)",
    "y[b, m, n] = acc[b, m, n] + 1.0",
    inputs="x: bf16[B, M, K], w: bf16[K, N]",
    result="bf16[B, M, N]",
)
LINES = (
    "tile(b, size=1)",
    "tile(m, size=32)",
    "tile(n, size=64)",
    "tile(k, size=16)",
    "place(b.outer, level=grid)",
    "place(m.outer, level=grid)",
    "place(n.outer, level=grid)",
    "compute(acc, unit=matrix)",
)


def launch(*lines) -> Launch:
    return lowered(BATCHED, *(lines or LINES), sizes=SIZES, machine=WITH_THREADS).launches[0]


def described(made: Launch, s, rules=RULES):
    shapes = {p.name: p.shape for p in made.parameters}
    blocks, value = Blocks(made, rules), made.value(s.value)
    held = blocks.shape(blocks.axes(value.names))
    return describe(s, value.dtype, shapes[s.tensor], blocks, held)


def of(tensor, *lines):
    made = launch(*lines)
    (s,) = [s for s in made.statements() if isinstance(s, Load | Store) and s.tensor == tensor]
    return described(made, s)


def texts(parts):
    return [scalar_text(e) for e in parts]


def test_a_box_has_one_element_along_scalars_and_starts_at_the_tile():
    made, box = of("x")
    assert made.name == box.descriptor == Name("descriptor", "x")
    assert made.flag == Name("bulk", "x") and made.tensor == "x"
    assert texts(box.shape) == texts(made.box) == ["1", "32", "16"]
    assert texts(box.at) == ["b_at", "m_at", "k_at"]
    assert texts(made.sizes) == ["B", "M", "K"]
    assert [texts(s) for s in made.strides] == [["M", "K"], ["K"], []]


def test_a_tensor_can_be_described_where_its_rows_are_aligned():
    """Strides are multiples of 16 bytes, 8 elements of bf16."""
    assert of("x")[0].condition == Describable(Size("K"), 8, (), 256)
    assert of("w")[0].condition == of("y")[0].condition == Describable(Size("N"), 8, (), 256)


def test_a_vector_always_can():
    spec = spec_of("y[m] = x[m] * 2.0", inputs="x: f32[M]", result="f32[M]")
    made = lowered(spec, "tile(m, size=64)", sizes=dict(M=256), machine=WITH_THREADS).launches[0]
    (load,) = [s for s in made.statements() if isinstance(s, Load)]
    assert described(made, load)[0].condition == Describable(None, 4, (), 256)


def test_a_box_is_held_in_the_shape_of_its_value():
    assert texts(of("x")[1].held) == ["32", "16"]
    assert texts(of("w")[1].held) == texts(of("w")[1].shape) == ["16", "64"]


def test_the_width_of_an_untiled_index_is_the_launchers():
    lines = tuple(line for line in LINES if "tile(n" not in line and "n.outer" not in line)
    made, box = of("w", *lines)
    width = BlockWidth(Size("N"), 16)
    assert box.shape == (Number(16), Name("width", "n"))
    assert texts(box.at) == ["k_at", "0"]
    assert made.box == (Number(16), width)
    assert made.condition == Describable(Size("N"), 8, (width,), 256)


@pytest.mark.parametrize("tile", [24, 512])
def test_what_is_no_box_is_refused(tile):
    lines = tuple(line.replace("size=32", f"size={tile}") for line in LINES)
    with pytest.raises(BackendError, match="`x` cannot be moved in bulk") as seen:
        of("x", *lines)
    assert seen.value.stage == "emit"


def of_w(first, second):
    made = launch()
    (load,) = [s for s in made.statements() if isinstance(s, Load) and s.tensor == "w"]
    return made, Load(load.value, "w", (first or load.region[0], second or load.region[1]))


STEPPED = Slice("k", (("k", 2),), Number(0), step=2)


def test_steps_are_told_where_the_language_takes_them():
    descriptor, box = described(*of_w(STEPPED, None))
    assert descriptor.steps == (2, 1) and texts(box.at) == ["(k_at * 2)", "n_at"]


def test_steps_along_rows_and_of_other_languages_are_refused():
    for first, second in ((None, Slice("n", (("n", 2),), Number(0), step=2)), (STEPPED, None)):
        rules = RULES if second else replace(RULES, box_steps=1)
        with pytest.raises(BackendError, match="cannot be moved in bulk"):
            described(*of_w(first, second), rules)


SIX = spec_of(
    "y[a, b, c, d, m, k] = x[a, b, c, d, m, k] * 2.0",
    inputs="x: f32[2, 3, 4, 5, M, K]",
    result="f32[2, 3, 4, 5, M, K]",
)
SIX_TILES = tuple(f"tile({i}, size=1)" for i in "abcd")


def test_neighbours_of_one_element_are_one_dimension_where_there_are_too_many():
    tiles = (*SIX_TILES, "tile(m, size=16)", "tile(k, size=64)")
    made = lowered(SIX, *tiles, sizes=dict(M=64, K=64), machine=WITH_THREADS).launches[0]
    (load,) = [s for s in made.statements() if isinstance(s, Load)]
    descriptor, box = described(made, load, replace(RULES, box_dimensions=5))
    assert texts(box.shape) == texts(descriptor.box) == ["1", "16", "64"]
    assert texts(box.at) == ["((((((a_at * 3) + b_at) * 4) + c_at) * 5) + d_at)", "m_at", "k_at"]
    assert texts(descriptor.sizes) == ["(((2 * 3) * 4) * 5)", "M", "K"]
    assert [texts(s) for s in descriptor.strides] == [["M", "K"], ["K"], []]
    every, _ = described(made, load, replace(RULES, box_dimensions=6))
    assert texts(every.box) == ["1", "1", "1", "1", "16", "64"]


def test_how_many_dimensions_are_too_many_the_machine_says():
    lines = (*SIX_TILES, "tile(m, size=16)", "tile(k, size=64)", "copy(x, by=bulk)")
    nest = lowered(SIX, *lines, sizes=dict(M=64, K=64), machine=WITH_THREADS)
    assert RULES.box_dimensions == 0
    ((_, (made,)),) = tile_program(nest, WITH_THREADS, RULES).groups
    assert [len(d.box) for d in made.descriptors] == [3]


FILTER = spec_of(
    "y[m, o, g] = sum(x[m, k] * w[o, g, k], k)",
    inputs="x: f32[64, 64], w: f32[64, 4, 64]",
    result="f32[64, 64, 4]",
)


@pytest.mark.parametrize(("most", "rows"), [(256, ["32", "16"]), (16, ["8", "4", "16"])])
def test_rows_that_a_box_covers_are_one_dimension_up_to_its_limit(most, rows):
    """The matrix unit then reads the box in place."""
    lines = ("tile(m, size=16)", "tile(o, size=8)", "tile(k, size=16)")
    made = lowered(FILTER, *lines, sizes={}, machine=WITH_THREADS).launches[0]
    (load,) = [s for s in made.statements() if isinstance(s, Load) and s.tensor == "w"]
    descriptor, box = described(made, load, replace(RULES, box_rows=True, box_most=most))
    assert texts(descriptor.box) == texts(box.shape) == rows
    assert texts(box.at)[0] == ("(o_at * 4)" if len(rows) == 2 else "o_at")
    assert texts(described(made, load)[0].box) == ["8", "4", "16"]
