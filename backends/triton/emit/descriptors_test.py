"""Tensors as the copy engine is told of them."""

import pytest

from backends.backend import BackendError
from backends.triton.emit.blocks import Blocks
from backends.triton.emit.descriptors import describe
from ir.nest.nest import Launch, Load, Slice, Store
from ir.samples.samples import WITH_LANES, lowered, spec_of
from ir.spec import Number

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
    return lowered(BATCHED, *(lines or LINES), sizes=SIZES, machine=WITH_LANES).launches[0]


def described(made: Launch, s):
    shapes = {p.name: p.shape for p in made.parameters}
    return describe(s, made.value(s.value).dtype, shapes[s.tensor], Blocks(made))


def of(tensor, *lines):
    made = launch(*lines)
    (s,) = [s for s in made.statements() if isinstance(s, Load | Store) and s.tensor == tensor]
    return described(made, s)


def test_a_box_has_one_element_along_scalars_and_starts_at_the_tile():
    found = of("x")
    assert found.name == "x_desc" and found.flag == "BULK_X"
    assert found.box == "[1, 32, 16]"
    assert found.at == "b_at, m_at, k_at"
    assert found.made == "TensorDescriptor(x, [B, M, K], [M * K, K, 1], [1, 32, 16])"


def test_a_tensor_can_be_described_where_its_rows_are_aligned():
    """Strides are multiples of 16 bytes, 8 elements of bf16."""
    assert of("x").condition == "K % 8 == 0"
    assert of("w").condition == of("y").condition == "N % 8 == 0"


def test_a_vector_always_can():
    spec = spec_of("y[m] = x[m] * 2.0", inputs="x: f32[M]", result="f32[M]")
    made = lowered(spec, "tile(m, size=64)", sizes=dict(M=256), machine=WITH_LANES).launches[0]
    (load,) = [s for s in made.statements() if isinstance(s, Load)]
    assert described(made, load).condition == "True"


def test_what_is_loaded_is_given_the_shape_of_its_value():
    found = of("x")
    assert found.load("[32, 16]") == "tl.reshape(x_desc.load([b_at, m_at, k_at]), [32, 16])"
    assert found.load("[1, 32, 16]") == "x_desc.load([b_at, m_at, k_at])"
    assert of("y").store("y", "[32, 64]") == (
        "y_desc.store([b_at, m_at, n_at], tl.reshape(y, [1, 32, 64]))"
    )


def test_the_width_of_an_untiled_index_is_the_launchers():
    lines = tuple(line for line in LINES if "tile(n" not in line and "n.outer" not in line)
    found = of("w", *lines)
    assert found.box == "[16, BLOCK_N]"
    assert found.at == "k_at, 0"
    assert "max(16, triton.next_power_of_2(N))" in found.made
    assert found.condition == "N % 8 == 0 and max(16, triton.next_power_of_2(N)) <= 256"


@pytest.mark.parametrize("tile", [24, 512])
def test_what_is_no_box_is_refused(tile):
    lines = tuple(line.replace("size=32", f"size={tile}") for line in LINES)
    with pytest.raises(BackendError, match="`x` cannot be moved in bulk") as seen:
        of("x", *lines)
    assert seen.value.stage == "emit"


def test_steps_and_rows_are_refused():
    made = launch()
    (load,) = [s for s in made.statements() if isinstance(s, Load) and s.tensor == "w"]
    stepped = Slice("k", (("k", 2),), Number(0), step=2)
    wrong = Load(load.value, "w", (stepped, load.region[1]))
    with pytest.raises(BackendError, match="cannot be moved in bulk"):
        described(made, wrong)
