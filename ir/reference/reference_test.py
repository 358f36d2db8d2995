"""The reference agrees with PyTorch in float64, and with plain loops where PyTorch has no
equivalent."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from ir.errors import KernelError
from ir.parse.parse import parse_spec, parse_workload
from ir.reference import reference
from ir.reference.inputs import random_inputs
from ir.reference.reference import evaluate, evaluate_storage, storage_dtype
from ir.reference.rounding import round_to
from ir.workload import LIBRARY

F = torch.nn.functional
WORKLOADS = {p.stem: parse_workload(p.read_text(), p.name) for p in sorted(LIBRARY.glob("*.kir"))}


def rms_norm(x, g, eps):
    return F.rms_norm(x, x.shape[-1:], g, eps)


def attention(q, k, v):
    return F.scaled_dot_product_attention(q, k, v)


def pffn(x, w1, b1, g1, w2, g2):
    h = rms_norm(F.gelu(torch.bmm(x, w1) + b1[:, None]), g1, 1e-6)
    return rms_norm(torch.bmm(h, w2), g2, 1e-6)


def map_id(ids, keys):
    places = torch.searchsorted(keys, ids)
    return torch.where(torch.isin(ids, keys), places + 1, 0)


def pairwise_dot(x):
    return torch.tril(x @ x.mT, diagonal=-1)


def embedding_bag(table, idx, offsets):
    return F.embedding_bag(idx, table, offsets, mode="sum", include_last_offset=True)


TORCH = {
    "softmax": lambda x: torch.softmax(x, -1),
    "layer_norm": lambda x, g, b: F.layer_norm(x, x.shape[1:], g, b, 1e-5),
    "rmsnorm_matmul": lambda x, g, w: F.silu(rms_norm(x, g, 1e-6) @ w),
    "matmul_bias_gelu": lambda x, w, b: F.gelu(x @ w + b),
    "attention": attention,
    "wukong_fm": lambda x, y: x @ x.mT @ y,
    "pffn": pffn,
    "conv1d": lambda x, w, b: F.conv1d(x, w, b, padding=1),
    "conv2d": lambda x, w, b: F.conv2d(x, w, b, padding=1),
    "max_pool2d": lambda x: F.max_pool2d(x, 3, 2, 1),
    "embedding_bag": embedding_bag,
    "map_id": map_id,
    "pairwise_dot": pairwise_dot,
    "cumsum": lambda x: torch.cumsum(x, -1),
}
CASES = [(name, sizes) for name, w in WORKLOADS.items() for sizes in w.checks]
TOLERANCE = {"f64": 1e-13, "f32": 1e-5, "f16": 2e-2, "bf16": 1e-1}


def wide(array: np.ndarray) -> torch.Tensor:
    kind = np.float64 if array.dtype.kind == "f" else np.int64
    return torch.from_numpy(array.astype(kind))


def test_every_library_kernel_has_a_counterpart():
    assert TORCH.keys() == WORKLOADS.keys()


@pytest.mark.parametrize(("name", "sizes"), CASES, ids=str)
def test_agrees_with_pytorch(name, sizes):
    spec = WORKLOADS[name].spec
    inputs = random_inputs(spec, sizes, np.random.default_rng(3))
    found = evaluate(spec, inputs, sizes)
    expected = TORCH[name](*(wide(a) for a in inputs.values())).numpy()
    assert list(found) == [t.name for t in spec.outputs]
    np.testing.assert_allclose(found[spec.outputs[0].name], expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("name", "sizes"), CASES, ids=str)
def test_storage_precision_stays_near(name, sizes):
    spec = WORKLOADS[name].spec
    inputs = random_inputs(spec, sizes, np.random.default_rng(4))
    exact, near = evaluate(spec, inputs, sizes), evaluate_storage(spec, inputs, sizes)
    for t in spec.outputs:
        np.testing.assert_array_equal(near[t.name], round_to(near[t.name], t.dtype))
        apart = np.linalg.norm(near[t.name].astype(float) - exact[t.name])
        assert apart <= TOLERANCE[storage_dtype(spec)] * np.linalg.norm(exact[t.name])


def spec_of(lines: str, signature: str, result: str):
    body = "".join(f"    {line.strip()}\n" for line in lines.split(";"))
    return parse_spec(f'def s({signature}) -> {result}:\n    """Doc."""\n{body}    return y\n')


X = np.array([[3.0, -1.0, 2.0, 2.0], [-5.0, 0.5, 0.0, 4.0]])
ROWS = "x: f64[M, K]"
REDUCED = {
    "sum(x[m, k], k)": X.sum(1),
    "prod(x[m, k], k)": X.prod(1),
    "max(x[m, k], k)": X.max(1),
    "min(x[m, k], k)": X.min(1),
    "argmax(x[m, k], k)": [0, 3],
    "argmin(x[m, k], k)": [1, 0],
    "any(x[m, k] > 3.0, k)": [False, True],
    "all(x[m, k] != 0.0, k)": [True, False],
    "sum(x[m, k] > 0.0, k)": [3, 2],
    "sum(x[m, k] * x[m, k] * 2.0, k)": 2 * (X**2).sum(1),
    "sum(pad(x[m, k - 1], 7.0) * k, k=4)": [3.0 - 2.0 + 6.0, -5.0 + 1.0],
    "argmax(x[m, k] * j, k, j=2)": [1, 7],
}


@pytest.mark.parametrize("value", REDUCED)
def test_reductions(value):
    kind = {"f": "f64", "i": "i32", "b": "b8"}[np.asarray(REDUCED[value]).dtype.kind]
    spec = spec_of(f"y[m] = {value}", ROWS, f"{kind}[M]")
    found = evaluate(spec, {"x": X}, {"M": 2, "K": 4})["y"]
    np.testing.assert_array_equal(found, REDUCED[value])


EINSUM = {
    "sum(x[i, k] * w[k, j] * u[j] * v[i], i, j)": "ik,kj,j,i->k",
    "sum(x[i, k] * w[k, j] * v[i] * t[j, i], i, k, j)": "ik,kj,i,ji->",
    "sum(x[i, k] * t[j, i], i, j)": "ik,ji->k",
    "sum(f32(x[i, k] * w[k, j]), k)": "ik,kj->ij",
    "sum(x[i, k] * x[i, k], i)": "ik,ik->k",
    "sum(x[i, k] * u[j], k)": "ik,j->ij",
    "sum(n[i] * n[i], i)": "i,i->",
}
OPERANDS = {
    "x": ("ik", "f64[I, K]"),
    "w": ("kj", "f64[K, J]"),
    "t": ("ji", "f64[J, I]"),
    "u": ("j", "f64[J]"),
    "v": ("i", "f64[I]"),
    "n": ("i", "i64[I]"),
}


@pytest.mark.parametrize("value", EINSUM)
def test_sums_of_products_agree_with_einsum(value):
    operands, result = EINSUM[value].split("->")
    names = [next(n for n, (axes, _) in OPERANDS.items() if axes == o) for o in operands.split(",")]
    names = ["n", "n"] if "n[i]" in value else names
    signature = ", ".join(f"{n}: {OPERANDS[n][1]}" for n in dict.fromkeys(names))
    kind = "i64" if "n" in names else "f64"
    shape = ", ".join(result.upper()) or "()"
    spec = spec_of(f"y[{', '.join(result) or '()'}] = {value}", signature, f"{kind}[{shape}]")
    sizes = {s: n for s, n in {"I": 5, "J": 3, "K": 4}.items() if s in signature}
    a = random_inputs(spec, sizes, np.random.default_rng(0))
    expected = np.einsum(EINSUM[value], *(a[n] for n in names))
    np.testing.assert_allclose(evaluate(spec, a, sizes)["y"], expected)


SCANNED = {
    "cumsum(x[m, k], k)": np.cumsum(X, 1),
    "cumsum(x[m, k], k, reverse=True)": np.cumsum(X[:, ::-1], 1)[:, ::-1],
    "cumsum(x[m, k], k, exclusive=True)": [[0, 3, 2, 4], [0, -5, -4.5, -4.5]],
    "cumsum(x[m, k], k, reverse=True, exclusive=True)": [[3, 4, 2, 0], [4.5, 4, 4, 0]],
    "cumprod(x[m, k], k)": np.cumprod(X, 1),
    "cummax(x[m, k], k)": np.maximum.accumulate(X, 1),
    "cummin(x[m, k], k, exclusive=True)": [[np.inf, 3, -1, -1], [np.inf, -5, -5, -5]],
}


@pytest.mark.parametrize("value", SCANNED)
def test_scans(value):
    spec = spec_of(f"y[m, k] = {value}", ROWS, "f64[M, K]")
    found = evaluate(spec, {"x": X}, {"M": 2, "K": 4})["y"]
    np.testing.assert_allclose(found, SCANNED[value])


JAGGED = {
    "sum": [5.0, 0.0, 2.0],
    "prod": [6.0, 1.0, -8.0],
    "max": [3.0, -np.inf, 4.0],
    "min": [2.0, np.inf, -2.0],
}


@pytest.mark.parametrize("reduction", JAGGED)
def test_jagged_reductions_give_the_identity_for_an_empty_segment(reduction):
    line = f"y[b] = {reduction}(v[l], l=range(o[b], o[b + 1]))"
    spec = spec_of(line, "v: f64[L], o: i32[B + 1]", "f64[B]")
    inputs = {"v": np.array([2.0, 3.0, -2.0, 4.0, 1.0]), "o": np.array([0, 2, 2, 4])}
    found = evaluate(spec, inputs, {"L": 5, "B": 3})["y"]
    np.testing.assert_array_equal(found, JAGGED[reduction])


def test_a_jagged_reduction_may_run_over_a_plain_index_and_use_the_segments_values():
    line = "y[b, d] = sum(v[l, d] * g[b] * c[k, d], k, l=range(lo[b], hi[b]))"
    signature = "v: f64[L, D], g: f64[B], c: f64[K, D], lo: i32[B], hi: i32[B]"
    spec = spec_of(line, signature, "f64[B, D]")
    sizes = {"L": 9, "D": 3, "B": 4, "K": 2}
    a = random_inputs(spec, sizes, np.random.default_rng(0))
    rows = zip(a["lo"], a["hi"], a["g"], strict=True)
    expected = [a["v"][lo:hi].sum(0) * g * a["c"].sum(0) for lo, hi, g in rows]
    assert a["lo"][0] == 0 and a["hi"][-1] == 9
    np.testing.assert_allclose(evaluate(spec, a, sizes)["y"], expected)


def test_scatter_adds_where_positions_meet():
    spec = spec_of("y[i[n], d] += v[n, d]", "i: i32[N], v: f64[N, D]", "f64[V, D]")
    inputs = {"i": np.array([1, 1, 0]), "v": np.array([[1.0], [2.0], [4.0]])}
    found = evaluate(spec, inputs, {"N": 3, "D": 1, "V": 3})["y"]
    np.testing.assert_array_equal(found, [[4.0], [3.0], [0.0]])


def test_a_transposed_convolution_scatters_to_affine_positions():
    spec = spec_of("y[2 * p + q] += x[p] * w[q]", "x: f64[P], w: f64[Q]", "f64[2 * P + Q]")
    sizes = {"P": 4, "Q": 3}
    a = random_inputs(spec, sizes, np.random.default_rng(0))
    expected = F.conv_transpose1d(wide(a["x"])[None, None], wide(a["w"])[None, None], stride=2)
    np.testing.assert_allclose(evaluate(spec, a, sizes)["y"][:9], expected[0, 0])


def test_half_way_borders_count_the_entries_below():
    spec = spec_of("y[m] = bucketize(x[m], b)", "x: f64[M], b: f64[U]", "i32[M]")
    inputs = {"x": np.array([0.0, 1.0, 1.5, 9.0]), "b": np.array([1.0, 1.0, 2.0])}
    np.testing.assert_array_equal(evaluate(spec, inputs, {"M": 4, "U": 3})["y"], [0, 0, 2, 3])


FUNCTIONS = {
    "relu": F.relu,
    "square": torch.square,
    "exp": torch.exp,
    "sqrt": torch.sqrt,
    "rsqrt": torch.rsqrt,
    "log": torch.log,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "erf": torch.erf,
    "sin": torch.sin,
    "cos": torch.cos,
    "silu": F.silu,
    "gelu": F.gelu,
    "abs": torch.abs,
    "floor": torch.floor,
    "ceil": torch.ceil,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    spec = spec_of(f"y[m] = {name}(x[m])", "x: f64[M]", "f64[M]")
    x = np.array([-30.0, -3.0, -0.5, -1e-9, 0.0, 1e-9, 0.7, 2.0, 30.0])
    found = evaluate(spec, {"x": x}, {"M": x.size})["y"]
    expected = FUNCTIONS[name](torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-15)


WHOLE = {
    "a[m] // b[m]": [2, -3, 2, -3],
    "a[m] % b[m]": [1, 2, -1, -2],
    "a[m] / b[m]": [7 / 3, -7 / 3, 7 / 3, -7 / 3],
    "a[m] ** 2": [49, 49, 49, 49],
    "2 ** minimum(b[m], 0)": [1, 1, 0, 0],
    "a[m] ** b[m]": [343, -343, 0, 0],
    "cummax(a[m], m, exclusive=True)": [np.iinfo(np.int32).min, 7, 7, 7],
    "cummin(a[m] > 0, m, exclusive=True)": [True, True, False, False],
    "abs(a[m]) - 1": [6, 6, 6, 6],
    "i32(f32(a[m]) / 2.0)": [3, -3, -3, 3],
    "where(a[m] > 0, a[m], -1)": [7, -1, -1, 7],
    "f32(b8(b[m] + 3))": [1.0, 1.0, 0.0, 0.0],
    "minimum(a[m] > 0, b[m] > 0)": [True, False, False, False],
}


@pytest.mark.parametrize("value", WHOLE)
def test_integers_divide_downwards_and_casts_truncate(value):
    expected = np.asarray(WHOLE[value])
    kind = {"f": "f32", "i": "i32", "b": "b8"}[expected.dtype.kind]
    named = [n for n in "ab" if f"{n}[" in value]
    spec = spec_of(f"y[m] = {value}", ", ".join(f"{n}: i32[M]" for n in named), f"{kind}[M]")
    given = {"a": np.array([7, -7, -7, 7]), "b": np.array([3, 3, -3, -3])}
    found = evaluate(spec, {n: given[n] for n in named}, {"M": 4})["y"]
    np.testing.assert_allclose(found, expected)


BLOCKS = ("softmax", "conv2d", "attention", "pairwise_dot", "embedding_bag", "pffn", "max_pool2d")


@pytest.mark.parametrize("name", BLOCKS)
def test_blocks_of_any_size_give_the_same(name, monkeypatch):
    spec, sizes = WORKLOADS[name].spec, WORKLOADS[name].checks[1]
    inputs = random_inputs(spec, sizes, np.random.default_rng(5))
    whole = evaluate(spec, inputs, sizes)
    monkeypatch.setattr(reference, "LARGEST_BLOCK", 8)
    for name, array in evaluate(spec, inputs, sizes).items():
        np.testing.assert_allclose(array, whole[name], rtol=1e-12)


def test_a_read_outside_is_refused():
    spec = spec_of("y[m] = x[m + 2]", "x: f64[K]", "f64[M]")
    evaluate(spec, {"x": np.ones(5)}, {"K": 5, "M": 3})
    with pytest.raises(KernelError, match="reads position 5 of a dimension of 5"):
        evaluate(spec, {"x": np.ones(5)}, {"K": 5, "M": 4})


def test_a_write_outside_is_refused():
    spec = spec_of("y[i[n]] += v[n]", "i: i32[N], v: f64[N]", "f64[V]")
    inputs = {"i": np.array([0, -1]), "v": np.ones(2)}
    with pytest.raises(KernelError, match="`y` is written at -1 to 0"):
        evaluate(spec, inputs, {"N": 2, "V": 3})


def test_wrong_inputs_are_refused():
    spec = WORKLOADS["softmax"].spec
    with pytest.raises(KernelError, match="is not given its input `x`"):
        evaluate(spec, {}, {"M": 2, "K": 4})
    with pytest.raises(KernelError, match=r"`x` has the shape \(2, 4\)"):
        evaluate(spec, {"x": X}, {"M": 4, "K": 2})


def test_storage_precision_rounds_after_each_equation():
    spec = spec_of("z[m] = f32(x[m]) * 3.0; y[m] = z[m] / 3.0", "x: bf16[M]", "bf16[M]")
    x = round_to(np.array([1.1, 70.3, 1e30]), "bf16")
    z = round_to(x.astype(np.float64) * 3, "bf16").astype(np.float64)
    found = evaluate_storage(spec, {"x": x}, {"M": 3})["y"]
    np.testing.assert_array_equal(found, round_to(z / 3, "bf16"))
    assert not np.array_equal(z, x.astype(np.float64) * 3)


def test_tensors_of_tf32_are_rounded_to_it_at_storage_precision_alone():
    spec = parse_spec(
        'def f(x: f32[M]) -> f32[M]:\n    """Round."""\n    r[m] = tf32(x[m])\n'
        "    y[m] = f32(r[m]) * 1.0\n    return y\n"
    )
    x = np.random.default_rng(0).normal(size=64).astype(np.float32)
    sizes = {"M": 64}
    np.testing.assert_array_equal(evaluate(spec, {"x": x}, sizes)["y"], x)
    found = evaluate_storage(spec, {"x": x}, sizes)["y"]
    np.testing.assert_array_equal(found, round_to(x, "tf32"))
    assert (found != x).any()


def test_what_a_sum_reads_is_rounded_where_the_spec_lets_it_be_at_storage_precision_alone():
    lines = "a[m] = sum(x[m, k] * w[k], k); y[m] = a[m] + x[m, 0]"
    plain = spec_of(lines, "x: f32[M, K], w: f32[K]", "f32[M]")
    spec = replace(plain, rounded=("a",))
    rng = np.random.default_rng(0)
    given = {n: rng.normal(size=s).astype(np.float32) for n, s in (("x", (5, 40)), ("w", (40,)))}
    sizes = {"M": 5, "K": 40}
    exact = evaluate(spec, given, sizes)["y"]
    np.testing.assert_array_equal(exact, evaluate(plain, given, sizes)["y"])
    narrow = {n: round_to(a, "tf32").astype(np.float64) for n, a in given.items()}
    expected = narrow["x"] @ narrow["w"] + given["x"][:, 0]  # what is no operand keeps its bits
    found = evaluate_storage(spec, given, sizes)["y"]
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    off = np.abs(found - exact).max()
    assert off > 20 * np.abs(evaluate_storage(plain, given, sizes)["y"] - exact).max()


def test_a_wide_intermediate_keeps_its_range_at_storage_precision():
    lines = "s[()] = sum(f32(x[m]) ** 2, m); y[m] = x[m] * rsqrt(s[()])"
    spec = spec_of(lines, "x: f16[M]", "f16[M]")
    x = np.full(4, 1000, np.float16)
    np.testing.assert_array_equal(evaluate_storage(spec, {"x": x}, {"M": 4})["y"], [0.5] * 4)


def test_parts_of_ranges():
    """A sum over several, and a maximum over one that is empty in its first row."""
    text = '''def f(x: f32[M, 3, 2, K], w: f32[4, 3, 2, K]) -> (f32[M, 4], f32[4]):
    """F."""
    y[m, j] = sum(x[m, r, s, k] * w[j, r, s, k], k, r=range(j // 2, j // 2 + 2), s=range(0, j % 2 + 1))
    z[j] = max(w[j, t, 0, 0], t=range(0, j))
    return y, z
'''
    rng = np.random.default_rng(4)
    x, w = rng.normal(size=(5, 3, 2, 6)), rng.normal(size=(4, 3, 2, 6))
    found = evaluate(parse_spec(text), {"x": x, "w": w}, {"M": 5, "K": 6})
    for j in range(4):
        r, s = slice(j // 2, j // 2 + 2), slice(0, j % 2 + 1)
        terms = x[:, r, s] * w[j, r, s]
        np.testing.assert_allclose(found["y"][:, j], terms.sum(axis=(1, 2, 3)), rtol=1e-12)
        np.testing.assert_allclose(found["z"][j], w[j, :j, 0, 0].max(initial=-np.inf))
