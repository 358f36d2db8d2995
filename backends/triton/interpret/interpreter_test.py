"""Interpreted sources: right results, and faults that a device would hide."""

import sys

import numpy as np
import pytest

from backends.backend import BackendError, Built
from backends.gpu.child import in_child
from backends.registry import backend
from backends.triton.build.compile import compiled
from backends.triton.interpret.interpreter import SECONDS, interpret, interpreted
from backends.triton.table import table
from ir.reference.inputs import random_inputs
from ir.reference.reference import evaluate

SHAPE = dict(M=20, N=100)
HEAD = (
    "import torch\nimport triton\nimport triton.language as tl\n"
    "from triton.language.extra import libdevice\n\n\n"
)


@pytest.fixture
def results(nest_of, machine_of, tmp_path):
    """The outputs of a source and the reference, on random inputs or those given."""

    def run(text, nest, order=0, target="h200", given=None, **sizes):
        file = tmp_path / "kernel.py"
        file.write_text(text)
        nest = nest_of(nest, **sizes)
        rng = np.random.default_rng(5)
        inputs = given or random_inputs(nest.spec, sizes, rng)
        got = interpret(Built(file), nest, machine_of(target), sizes, inputs, order)
        return got, evaluate(nest.spec, inputs, sizes)

    return run


@pytest.mark.parametrize("order", [0, 3])
def test_a_masked_map(results, source_of, order):
    got, exact = results(source_of("scale"), "scale", order, **SHAPE)
    np.testing.assert_allclose(got["y"], exact["y"], rtol=1e-6)


@pytest.mark.parametrize("order", [0, 3])
def test_a_product_of_bf16_is_right_to_bf16(results, source_of, order):
    got, exact = results(source_of("matmul"), "matmul", order, M=100, N=90, K=70)
    y = got["y"]
    assert y.dtype == np.float32
    assert not np.any(y.view(np.uint32) & 0xFFFF), "bf16 is held in float32 as it is"
    error = np.linalg.norm(y - exact["y"]) / np.linalg.norm(exact["y"])
    assert error < 2.0**-8


@pytest.mark.parametrize("order", [0, 3])
def test_a_reduction_and_its_position(results, source_of, order):
    got, exact = results(source_of("row_max"), "row_max", order, M=7, N=33)
    np.testing.assert_array_equal(got["y"], exact["y"])
    np.testing.assert_array_equal(got["p"], exact["p"])
    assert got["p"].dtype == np.int32


def test_a_child_imports_nothing_of_triton(nest_of, machine_of, source_of, tmp_path):
    """Each child would import it again: `interpret` and `build` find what a backend warms."""
    file, machine, nest = tmp_path / "kernel.py", machine_of("h200"), nest_of("scale", **SHAPE)
    file.write_text(source_of("scale"))
    inputs = random_inputs(nest.spec, SHAPE, np.random.default_rng(5))
    backend("triton").warm(machine)

    def imported(work):
        def new():
            before = set(sys.modules)
            work()
            return {name for name in set(sys.modules) - before if name.startswith("triton.")}

        return in_child(new, SECONDS, "check", tmp_path)

    assert imported(lambda: interpreted(Built(file), nest, machine, SHAPE, inputs, 0)) == set()
    assert imported(lambda: compiled(file, nest, table(machine))) == set()


def test_bounds_from_data(results, source_of):
    got, exact = results(source_of("bag"), "bag", V=50, D=20, L=64, B=16)
    np.testing.assert_allclose(got["y"], exact["y"], rtol=1e-5, atol=1e-6)


def test_every_other_format_of_the_language(results):
    text = (
        f"{HEAD}@triton.jit\ndef pick_0(c, i, h, d, a, j, g, e, M, BLOCK: tl.constexpr):\n"
        "    at = tl.arange(0, BLOCK)\n    inside = at < M\n"
        "    flag = tl.load(c + at, mask=inside, other=0).to(tl.int1)\n"
        "    i_ = tl.load(i + at, mask=inside)\n"
        "    h_ = tl.load(h + at, mask=inside)\n"
        "    d_ = tl.load(d + at, mask=inside)\n"
        "    tl.store(a + at, ~flag, mask=inside)\n"
        "    tl.store(j + at, tl.where(flag, i_, i_ + i_), mask=inside)\n"
        "    tl.store(g + at, h_ + h_, mask=inside)\n"
        "    tl.store(e + at, d_ + d_, mask=inside)\n\n\n"
        "def launch(c, i, h, d, a, j, g, e):\n"
        "    pick_0[(1,)](c, i, h, d, a, j, g, e, c.shape[0], BLOCK=32)\n"
    )
    got, exact = results(text, "pick", M=19)
    for name, dtype in dict(a=np.bool_, j=np.int64, g=np.float16, e=np.float64).items():
        assert got[name].dtype == dtype
        np.testing.assert_allclose(got[name].astype(float), exact[name].astype(float), rtol=1e-3)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("reads_outside", r"scale_0 reads outside `x`: 4 bytes at byte 80\d\d; it has 8000"),
        ("writes_outside", "scale_0 writes outside `y`: 4 bytes at byte -1200; it has 8000"),
        ("writes_input", "scale_0 writes to its input `x`"),
    ],
)
def test_a_stray_access_is_named(results, source_of, source, words):
    with pytest.raises(BackendError, match=words) as seen:
        results(source_of(source), "scale", **SHAPE)
    assert seen.value.stage == "check"


def test_what_is_left_unwritten_stays_poisoned(results, source_of):
    got, _ = results(source_of("leaves_unwritten"), "scale", **SHAPE)
    assert np.isnan(got["y"].reshape(-1)[-1])
    assert not np.isnan(got["y"].reshape(-1)[:-1]).any()


def test_a_race_shows_in_another_order(results, source_of):
    source = source_of("races")
    first, again = (results(source, "scale", **SHAPE)[0]["y"] for _ in range(2))
    other = results(source, "scale", 1, **SHAPE)[0]["y"]
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other, equal_nan=True)


def test_a_fault_in_a_kernel_names_the_program(results, source_of):
    text = source_of("scale").replace("tile * 2.0", "tile * undefined")
    with pytest.raises(BackendError, match=r"scale_0, program \(0, 0, 0\): NameError.*undefined"):
        results(text, "scale", **SHAPE)


def probe(lines, header=""):
    """A kernel of one program on x and y as vectors of 16; `lines` compute v from x's elements
    u."""
    body = "".join(f"    {line}\n" for line in lines)
    return (
        f"{HEAD}{header}\n\n@triton.jit\n"
        "def scale_0(x, y, BLOCK: tl.constexpr):\n    at = tl.arange(0, BLOCK)\n"
        f"    u = tl.load(x + at)\n{body}    tl.store(y + at, v)\n\n\n"
        "def launch(x, y):\n    scale_0[(1,)](x, y, BLOCK=16)\n"
    )


@pytest.fixture
def probed(results):
    """The result of a probe's lines on a vector of 16 elements."""

    def run(lines, x, header="", **rest):
        x = np.asarray(x, np.float32).reshape(4, 4)
        got, _ = results(probe(lines, header), "scale", given={"x": x}, M=4, N=4, **rest)
        return got["y"].reshape(-1)

    return run


X = np.linspace(-2, 2, 16, dtype=np.float32)


def bf16(x):
    bits = np.asarray(x, np.float32).view(np.uint32).astype(np.uint64)
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return bits.astype(np.uint32).view(np.float32)


HALF = 1 + 2.0**-8  # between two bf16 numbers, as is the next
TIES = np.array([HALF, 1 + 3 * 2.0**-8, -HALF, 1 + 2.0**-7] * 4, np.float32)


def test_f32_goes_to_the_nearest_bf16_ties_to_even(probed):
    np.testing.assert_array_equal(
        probed(["v = u.to(tl.bfloat16).to(tl.float32)"], TIES), bf16(TIES)
    )
    np.testing.assert_array_equal(probed(["v = u.to(tl.bfloat16).to(tl.float32)"], X), bf16(X))


def test_arithmetic_of_bf16_is_on_values_and_rounded(probed):
    lines = ["a = u.to(tl.bfloat16)", "v = (a * a + a).to(tl.float32)"]
    a = bf16(X)
    np.testing.assert_array_equal(probed(lines, X), bf16(bf16(a * a) + a))


def test_bf16_compares_chooses_negates_and_is_made_of_constants(probed):
    lines = [
        "a = u.to(tl.bfloat16)",
        "c = tl.full([BLOCK], 1.5, tl.bfloat16)",
        "v = tl.where(a < c, tl.abs(-a), tl.maximum(a, c)).to(tl.float32)",
    ]
    a = bf16(X)
    np.testing.assert_array_equal(probed(lines, X), np.where(a < 1.5, np.abs(a), a))


def test_the_bits_of_bf16_can_be_seen(probed):
    lines = ["b = u.to(tl.bfloat16).to(tl.int16, bitcast=True)", "v = b.to(tl.float32)"]
    expected = (bf16(X).view(np.uint32) >> 16).astype(np.uint16).view(np.int16)
    np.testing.assert_array_equal(probed(lines, X), expected.astype(np.float32))


def test_fp8_is_rounded_to_the_nearest(probed):
    got = probed(["v = u.to(tl.float8e4nv).to(tl.float32)"], X)
    assert np.all(np.abs(got - X) <= np.abs(X) * 2.0**-4)
    np.testing.assert_array_equal(got * 256, np.rint(got * 256))


def test_integers_divide_toward_zero(probed):
    lines = ["i = (u * 8).to(tl.int32)", "v = ((i // 3) * 1000 + i % 3).to(tl.float32)"]
    i = np.trunc(X * 8)
    np.testing.assert_array_equal(probed(lines, X), np.trunc(i / 3) * 1000 + np.fmod(i, 3))


def test_floats_that_fit_no_integer_become_the_nearest(probed):
    x = np.array([np.nan, 1e20, -1e20, 2.9] * 4, np.float32)
    expected = np.array([0, 2.0**31, -(2.0**31), 2] * 4, np.float32)
    np.testing.assert_array_equal(probed(["v = u.to(tl.int32).to(tl.float32)"], x), expected)


def test_erf_and_libdevice(probed):
    lines = ["v = tl.erf(u) + libdevice.tanh(u) * libdevice.pow(tl.abs(u), 2.0)"]
    from math import erf

    expected = np.array([erf(x) for x in X]) + np.tanh(X) * X**2
    np.testing.assert_allclose(probed(lines, X), expected, rtol=1e-5, atol=1e-6)


def test_a_function_of_libdevice_that_is_not_here_is_named(probed):
    with pytest.raises(BackendError, match="libdevice.j0 under the interpreter"):
        probed(["v = libdevice.j0(u)"], X)


def test_a_nan_is_no_maximum_unless_asked_for(probed):
    x = np.array([np.nan, 1, -1, 0] * 4, np.float32)
    np.testing.assert_array_equal(probed(["v = tl.maximum(u, 0.5)"], x), [0.5, 1, 0.5, 0.5] * 4)
    kept = probed(["v = tl.maximum(u, 0.5, propagate_nan=tl.PropagateNan.ALL)"], x)
    assert np.isnan(kept[0])


def test_reductions_and_scans_by_functions_of_the_kernel(probed):
    header = "@triton.jit\ndef both(a, b, c, d):\n    return a + c, tl.maximum(b, d)"
    lines = [
        "s, m = tl.reduce((u, u), 0, both)",
        "p, q = tl.associative_scan((u, u), 0, both)",
        "v = p + q + s + m + tl.cumsum(u, 0) + tl.sum(u, 0) + tl.max(u, 0)",
    ]
    total, most = X.sum(), X.max()
    expected = 2 * np.cumsum(X) + np.maximum.accumulate(X) + 2 * total + 2 * most
    np.testing.assert_allclose(probed(lines, X, header), expected, rtol=1e-5, atol=1e-5)


def test_the_index_of_a_loop_is_a_tensor(probed):
    lines = ["v = u", "for k in tl.range(0, 3):", "    v += k.to(tl.float32)"]
    np.testing.assert_allclose(probed(lines, X), X + 3, rtol=1e-6)


def test_library_functions_are_interpreted(probed):
    lines = ["v = tl.sigmoid(u) + tl.zeros([BLOCK], tl.float32) + u.sum() + tl.cdiv(7, 2)"]
    np.testing.assert_allclose(probed(lines, X), 1 / (1 + np.exp(-X)) + X.sum() + 4, rtol=1e-5)


@pytest.mark.parametrize(
    ("target", "precision", "least", "most"),
    [
        ("h200", '"tf32"', 1e-5, 1e-3),
        ("h200", '"tf32x3"', 0, 2e-6),
        ("h200", '"ieee"', 0, 1e-6),
        ("h200", "None", 1e-5, 1e-3),
        ("mi300", "None", 1e-5, 1e-3),
        ("mi350", "None", 0, 1e-6),
    ],
)
def test_products_of_f32_are_as_exact_as_the_matrix_unit(results, target, precision, least, most):
    text = (
        f"{HEAD}@triton.jit\n"
        "def scale_0(x, y, BLOCK: tl.constexpr):\n"
        "    at = tl.arange(0, BLOCK)\n"
        "    place = at[:, None] * BLOCK + at[None, :]\n"
        "    u = tl.load(x + place)\n"
        f"    tl.store(y + place, tl.dot(u, u, input_precision={precision}))\n\n\n"
        "def launch(x, y):\n    scale_0[(1,)](x, y, BLOCK=32)\n"
    )
    x = np.random.default_rng(0).standard_normal((32, 32)).astype(np.float32)
    got, _ = results(text, "scale", target=target, given={"x": x}, M=32, N=32)
    exact = x.astype(np.float64) @ x
    error = np.linalg.norm(got["y"] - exact) / np.linalg.norm(exact)
    assert least <= error <= most


@pytest.mark.parametrize("host", [True, False])
def test_descriptors_read_zeros_outside_and_do_not_write_there(results, host):
    made = "tl.make_tensor_descriptor({0}, shape=[M, N], strides=[N, 1], block_shape=[16, 16])"
    arguments = (
        "TensorDescriptor.from_tensor(x, [16, 16]), TensorDescriptor.from_tensor(y, [16, 16])"
    )
    text = (
        f"{HEAD}from triton.tools.tensor_descriptor import TensorDescriptor\n\n\n@triton.jit\n"
        "def scale_0(x, y, M, N):\n"
        f"    a = {'x' if host else made.format('x')}\n"
        f"    b = {'y' if host else made.format('y')}\n"
        "    m = tl.program_id(0) * 16\n"
        "    b.store([m, 0], a.load([m, 0]) * 2.0 + 1.0)\n\n\n"
        "def launch(x, y):\n"
        f"    scale_0[(2,)]({arguments if host else 'x, y'}, x.shape[0], x.shape[1])\n"
    )
    got, exact = results(text, "scale", M=20, N=12)
    np.testing.assert_allclose(got["y"], exact["y"], rtol=1e-6)


@pytest.mark.parametrize(
    ("said", "right"),
    [
        ("tl.multiple_of(x + at, 4)", True),
        ("tl.max_contiguous(x + at, BLOCK)", True),
        ("tl.max_contiguous(x + at * 2, 2)", False),
    ],
)
def test_what_is_said_of_pointers_is_counted_in_bytes(results, said, right):
    text = (
        f"{HEAD}@triton.jit\ndef scale_0(x, y, BLOCK: tl.constexpr):\n"
        f"    at = tl.arange(0, BLOCK)\n    places = {said}\n"
        "    tl.store(y + at, tl.load(x + at) * 2.0 + 1.0)\n\n\n"
        "def launch(x, y):\n    scale_0[(1,)](x, y, BLOCK=32)\n"
    )
    if right:
        got, exact = results(text, "scale", M=4, N=8)
        np.testing.assert_allclose(got["y"], exact["y"], rtol=1e-6)
    else:
        with pytest.raises(BackendError, match="which is not so"):
            results(text, "scale", M=4, N=8)
