"""Each operation of the device against numpy in float64, at odd sizes and in several dtypes."""

import math

import numpy as np
import pytest

from backends.sim.native.kernel_fixture import from_bfloat, run, to_bfloat
from ir.reference.philox import uniform

# In the order of the device's enum Op.
_OPS = (
    "copy neg abs floor ceil round trunc sign isnan isinf isfinite not bit_not "
    "add sub mul div floordiv mod fmod min max lt le gt ge eq ne and or xor "
    "bit_and bit_or bit_xor shl shr ipow uniform select fma "
    "exp log sqrt rsqrt recip tanh sigmoid erf sin cos pow silu gelu "
    "exp2 expm1 log2 log10 log1p erfc tan asin acos atan sinh cosh asinh acosh atanh atan2"
).split()
# they accept no floats
_INTEGER = tuple("bit_not bit_and bit_or bit_xor shl shr ipow uniform".split())
_REDUCTIONS = ["sum", "max", "min", "prod"]
_DTYPES = {"f32": 0, "f16": 1, "bf16": 2, "i32": 3, "i64": 4, "b8": 5}
_NUMPY = {
    "f32": np.float32,
    "f16": np.float16,
    "bf16": np.uint16,
    "i32": np.int32,
    "i64": np.int64,
    "b8": np.bool_,
}
_ROUNDING = {"f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8}

_sigmoid = np.vectorize(lambda v: 1 / (1 + math.exp(-v)))
_erf = np.vectorize(math.erf)
_erfc = np.vectorize(math.erfc)
_REFERENCE = {
    "copy": lambda a: a,
    "neg": lambda a: -a,
    "abs": np.abs,
    "floor": np.floor,
    "ceil": np.ceil,
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "floordiv": np.floor_divide,
    "mod": np.mod,
    "min": np.minimum,
    "max": np.maximum,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
    "and": np.logical_and,
    "or": np.logical_or,
    "not": np.logical_not,
    "round": np.rint,
    "trunc": np.trunc,
    "sign": np.sign,
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
    "fmod": np.fmod,
    "xor": np.logical_xor,
    "bit_not": lambda a: np.invert(a.astype(np.int64)),
    "bit_and": lambda a, b: a.astype(np.int64) & b.astype(np.int64),
    "bit_or": lambda a, b: a.astype(np.int64) | b.astype(np.int64),
    "bit_xor": lambda a, b: a.astype(np.int64) ^ b.astype(np.int64),
    "shl": lambda a, b: a.astype(np.int64) << b.astype(np.int64),
    "shr": lambda a, b: a.astype(np.int64) >> b.astype(np.int64),
    "ipow": lambda a, b: np.trunc(np.power(a, b)),
    "uniform": lambda a, b: uniform(a.astype(np.int64), b.astype(np.int64)),
    "select": lambda a, b, c: np.where(a != 0, b, c),
    "fma": lambda a, b, c: a * b + c,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": lambda a: 1 / np.sqrt(a),
    "recip": lambda a: 1 / a,
    "tanh": np.tanh,
    "sigmoid": _sigmoid,
    "erf": _erf,
    "sin": np.sin,
    "cos": np.cos,
    "pow": np.power,
    "silu": lambda a: a * _sigmoid(a),
    "gelu": lambda a: a * _erfc(-a / math.sqrt(2)) / 2,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "erfc": _erfc,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "atan2": np.arctan2,
}
_POSITIVE = set("log sqrt rsqrt pow log2 log10 log1p shl shr ipow".split())
_BINARY = set(
    "add sub mul div floordiv mod fmod min max lt le gt ge eq ne and or xor pow atan2 "
    "bit_and bit_or bit_xor shl shr ipow uniform".split()
)
_ABOVE_ZERO = set("div floordiv mod fmod shl shr ipow".split())
_INVERSE = ("asin", "acos", "atanh", "acosh")
_TERNARY = {"select", "fma"}

_MAP = """
KERNEL(k) {
  const Index m = args.size(3), n = args.size(4);
  const auto in = static_cast<Dtype>(args.size(1)), out = static_cast<Dtype>(args.size(2));
  const auto op = static_cast<Op>(args.size(0));
  const Index operands = args.size(5);
  if (pe.id() != 0) co_return;
  auto a = pe.buffer("a", in, {{M, m}, {N, n}}, 1);
  auto b = pe.buffer("b", in, {{N, n}}, 1);
  auto c = pe.buffer("c", in, {{M, m}, {N, n}}, 1);
  auto y = pe.buffer("y", out, {{N, n}, {M, m}}, 1);  // transposed on the way
  co_await pe.load(a.tile(), args.tensor(0), {{0, M, m}, {0, N, n}});
  co_await pe.load(b.tile(), args.tensor(1), {{0, N, n}});
  co_await pe.load(c.tile(), args.tensor(2), {{0, M, m}, {0, N, n}});
  const Box box{{M, m}, {N, n}};
  if (operands == 1) co_await pe.map(op, y.tile(), {a.tile()}, box);
  if (operands == 2) co_await pe.map(op, y.tile(), {a.tile(), b.tile()}, box);
  if (operands == 3) co_await pe.map(op, y.tile(), {a.tile(), b.tile(), c.tile()}, box);
  co_await pe.store(args.tensor(3), {{0, M, m}, {0, N, n}}, y.tile());
}
"""


def _values(array: np.ndarray, dtype: str) -> np.ndarray:
    exact = from_bfloat(array) if dtype == "bf16" else array
    return exact.astype(np.int64 if dtype in ("i32", "i64", "b8") else np.float64)


def _stored(values: np.ndarray, dtype: str) -> np.ndarray:
    return to_bfloat(values) if dtype == "bf16" else np.asarray(values).astype(_NUMPY[dtype])


def _draw(rng, shape, dtype: str, op: str = "") -> np.ndarray:
    if dtype in ("i32", "i64"):
        return rng.integers(1 if op in _ABOVE_ZERO else -9, 9, shape).astype(_NUMPY[dtype])
    if dtype == "b8":
        return rng.integers(0, 2, shape).astype(np.bool_)
    values = rng.normal(size=shape) * 3
    if op in _INVERSE:
        values = 1 + np.abs(values) if op == "acosh" else np.sin(values) * 0.9
    return _stored(np.abs(values) + 0.05 if op in _POSITIVE else values, dtype)


def _assert_close(got: np.ndarray, want: np.ndarray, dtype: str, ulps: float = 1.01) -> None:
    if dtype not in _ROUNDING:
        np.testing.assert_array_equal(_values(got, dtype), want)
        return
    # A unit in the last place is at most twice the rounding; f16 has subnormals above 2^-24.
    least = 2.0**-24 if dtype == "f16" else 1e-37
    bound = 2 * _ROUNDING[dtype] * np.abs(want) * ulps + least
    assert np.all(np.abs(_values(got, dtype) - want) <= bound)


def _cases():
    for op in _OPS:
        for dtype in ("f32", "f16", "bf16") if op not in _INTEGER else ():
            yield op, dtype, dtype
    for op in _OPS[: _OPS.index("exp")]:
        if op not in ("div", "uniform"):
            yield op, "i32", "i32"
            yield op, "i64", "i64"
    yield from (("lt", "f32", "b8"), ("eq", "i32", "b8"), ("div", "i32", "f32"))
    yield from (("uniform", "i32", "f32"), ("uniform", "i64", "bf16"), ("isnan", "f32", "b8"))
    yield from (("copy", "b8", "f32"), ("copy", "f32", "i32"), ("copy", "i32", "f16"))
    yield from (("copy", "f32", "bf16"), ("add", "f16", "f32"), ("not", "b8", "b8"))


@pytest.mark.parametrize(("op", "source", "result"), list(_cases()))
def test_map_equals_numpy(op: str, source: str, result: str) -> None:
    rng = np.random.default_rng(len(op))
    m, n = 7, 37
    a, c = _draw(rng, (m, n), source, op), _draw(rng, (m, n), source, op)
    b = _draw(rng, n, source, op)
    y = np.zeros((m, n), _NUMPY[result])
    count = 3 if op in _TERNARY else 2 if op in _BINARY else 1
    sizes = [_OPS.index(op), _DTYPES[source], _DTYPES[result], m, n, count]
    run(_MAP, {"a": a, "b": b, "c": c, "y": y}, sizes)
    operands = [_values(v, source) for v in (a, b, c)][:count]
    want = _REFERENCE[op](*operands)
    if result in ("i32", "i64"):
        want = np.trunc(want)
    _assert_close(y, want.astype(np.float64), result)


def test_integers_are_compared_and_multiplied_exactly() -> None:
    big = np.full((1, 3), 2**53 + 1, np.int64)
    other = np.array([2**53, 2**53 + 1, 2**53 + 2], np.int64)
    y = np.zeros((1, 3), np.int64)
    for op, want in (("eq", [0, 1, 0]), ("lt", [0, 0, 1]), ("mul", list(big[0] * other))):
        sizes = [_OPS.index(op), 4, 4, 1, 3, 2]
        run(_MAP, {"a": big, "b": other, "c": big, "y": y}, sizes)
        assert y[0].tolist() == want


@pytest.mark.parametrize("op", ["min", "max", "add", "exp", "gelu", "tanh", "select"])
def test_a_nan_stays_visible(op: str) -> None:
    a = np.array([[np.nan, 1.0]], np.float32)
    y = np.zeros((1, 2), np.float32)
    count = 3 if op in _TERNARY else 2 if op in _BINARY else 1
    sizes = [_OPS.index(op), 0, 0, 1, 2, count]
    b = np.array([1.0, np.nan], np.float32)
    run(_MAP, {"a": a, "b": b, "c": a, "y": y}, sizes)
    assert np.isnan(y[0, 1 if op == "select" else 0])
    assert op not in ("min", "max") or np.isnan(y[0, 1])


_SIN_COS = {v: (f(np.float64(np.float32(v)))) for f, v in ((np.sin, 3e38), (np.cos, 1e30))}
_SPECIALS = {
    "exp": ([-np.inf, 0, np.inf, 89, -110], [0, 1, np.inf, np.inf, 0]),
    "log": ([0, 1, np.inf, -1, -0.0], [-np.inf, 0, np.inf, np.nan, -np.inf]),
    "sqrt": ([0, np.inf, -1, 1e-45, 4], [0, np.inf, np.nan, np.sqrt(np.float32(1e-45)), 2]),
    "rsqrt": ([0, np.inf, -1, -0.0, 4], [np.inf, 0, np.nan, -np.inf, 0.5]),
    "recip": ([0, -0.0, np.inf, -np.inf, 4], [np.inf, -np.inf, 0, -0.0, 0.25]),
    "tanh": ([-np.inf, np.inf, 0, -0.0, 50], [-1, 1, 0, -0.0, 1]),
    "sigmoid": ([-np.inf, np.inf, 0, -200, 200], [0, 1, 0.5, 0, 1]),
    "erf": ([-np.inf, np.inf, 0, -0.0, 9], [-1, 1, 0, -0.0, 1]),
    "sin": ([0, -0.0, np.inf, -np.inf, 3e38], [0, -0.0, np.nan, np.nan, _SIN_COS[3e38]]),
    "cos": ([0, 1e30, np.inf, -np.inf, -0.0], [1, _SIN_COS[1e30], np.nan, np.nan, 1]),
    "silu": ([-np.inf, np.inf, 0, -200, 200], [-0.0, np.inf, 0, -0.0, 200]),
    "gelu": ([-np.inf, np.inf, 0, -200, 200], [-0.0, np.inf, 0, -0.0, 200]),
    "exp2": ([-np.inf, np.inf, 0, 3, -200], [0, np.inf, 1, 8, 0]),
    "expm1": ([-np.inf, np.inf, 0, -0.0, 1e-20], [-1, np.inf, 0, -0.0, 1e-20]),
    "log2": ([0, 1, np.inf, -1, 8], [-np.inf, 0, np.inf, np.nan, 3]),
    "log10": ([0, 1, np.inf, -1, 1000], [-np.inf, 0, np.inf, np.nan, 3]),
    "log1p": ([-1, -0.0, np.inf, -2, 1e-20], [-np.inf, -0.0, np.inf, np.nan, 1e-20]),
    "erfc": ([-np.inf, np.inf, 0, -9, 20], [2, 0, 1, 2, 0]),
    "tan": ([0, -0.0, np.inf, -np.inf, np.nan], [0, -0.0, np.nan, np.nan, np.nan]),
    "asin": ([1, -1, -0.0, 2, np.inf], [np.pi / 2, -np.pi / 2, -0.0, np.nan, np.nan]),
    "acos": ([1, -1, 0, 2, -np.inf], [0, np.pi, np.pi / 2, np.nan, np.nan]),
    "atan": ([-np.inf, np.inf, 0, -0.0, 1], [-np.pi / 2, np.pi / 2, 0, -0.0, np.pi / 4]),
    "sinh": ([-np.inf, np.inf, 0, -0.0, -200], [-np.inf, np.inf, 0, -0.0, -np.inf]),
    "cosh": ([-np.inf, np.inf, 0, -0.0, 200], [np.inf, np.inf, 1, 1, np.inf]),
    "asinh": ([-np.inf, np.inf, 0, -0.0, 1e-20], [-np.inf, np.inf, 0, -0.0, 1e-20]),
    "acosh": ([1, np.inf, 0, -np.inf, np.nan], [0, np.inf, np.nan, np.nan, np.nan]),
    "atanh": ([1, -1, 2, -0.0, -np.inf], [np.inf, -np.inf, np.nan, -0.0, np.nan]),
    "sign": ([-np.inf, np.inf, 0, -5, np.nan], [-1, 1, 0, -1, 0]),
    "round": ([0.5, 1.5, -2.5, np.inf, -0.0], [0, 2, -2, np.inf, -0.0]),
}


@pytest.mark.parametrize("op", _SPECIALS)
def test_special_functions_at_their_limits(op: str) -> None:
    arguments, want = (np.array([v], np.float32) for v in _SPECIALS[op])
    y = np.ones((1, 5), np.float32)
    tensors = {"a": arguments, "b": arguments[0].copy(), "c": arguments.copy(), "y": y}
    run(_MAP, tensors, [_OPS.index(op), 0, 0, 1, 5, 1])
    np.testing.assert_allclose(y, want, rtol=2e-7)
    known = ~np.isnan(want)
    assert np.array_equal(np.signbit(y[known]), np.signbit(want[0][known[0]]))


def test_pow_at_its_limits() -> None:
    a = np.array([[0, 0, -2, -2, np.inf, 1, np.nan, -8, 0.5, 2]], np.float32)
    b = np.array([0, -1, 3, 0.5, -1, np.nan, 0, 2, np.inf, 1000], np.float32)
    y = np.ones((1, 10), np.float32)
    run(_MAP, {"a": a, "b": b, "c": a.copy(), "y": y}, [_OPS.index("pow"), 0, 0, 1, 10, 2])
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(y[0], np.power(a[0], b), rtol=2e-7)


def test_atan2_at_its_limits() -> None:
    values = [0, -0.0, 1, -1, np.inf, -np.inf, np.nan]
    a, b = (np.array(v, np.float32) for v in zip(*[(p, q) for p in values for q in values]))
    y = np.ones((1, a.size), np.float32)
    sizes = [_OPS.index("atan2"), 0, 0, 1, a.size, 2]
    run(_MAP, {"a": a[None], "b": b, "c": a[None].copy(), "y": y}, sizes)
    np.testing.assert_allclose(y[0], np.arctan2(a, b), rtol=2e-7)


_REDUCE = """
KERNEL(k) {
  const Index m = args.size(2), n = args.size(3), way = args.size(4);
  const auto reduction = static_cast<Reduction>(args.size(0));
  const auto dtype = static_cast<Dtype>(args.size(1));
  if (pe.id() != 0) co_return;
  auto a = pe.buffer("a", dtype, {{M, m}, {N, n}}, 1);
  auto r = pe.buffer("r", dtype, {{M, m}}, 1);
  auto c = pe.buffer("c", dtype, {{N, n}}, 1);
  auto s = pe.buffer("s", dtype, {}, 1);
  co_await pe.load(a.tile(), args.tensor(0), {{0, M, m}, {0, N, n}});
  const Box box{{M, m}, {N, n}};
  if (way == 0) {
    co_await pe.reduce(reduction, r.tile(), a.tile(), box, false);
    co_await pe.store(args.tensor(1), {{0, M, m}}, r.tile());
  } else if (way == 1) {
    co_await pe.reduce(reduction, c.tile(), a.tile(), box, false);
    co_await pe.store(args.tensor(1), {{0, N, n}}, c.tile());
  } else {
    co_await pe.reduce(reduction, s.tile(), a.tile(), box, false);
    co_await pe.reduce(reduction, s.tile(), a.tile(), box, true);
    co_await pe.store(args.tensor(1), {{0}}, s.tile());
  }
}
"""


@pytest.mark.parametrize("way", [0, 1, 2])
@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "i32"])
@pytest.mark.parametrize("reduction", _REDUCTIONS)
def test_reduce_equals_numpy(reduction: str, dtype: str, way: int) -> None:
    rng = np.random.default_rng(3)
    m, n = 5, 33
    a = _draw(rng, (m, n), dtype)
    if reduction == "prod":
        a = _stored(np.where(rng.random((m, n)) < 0.5, 1, -1) * 1.0, dtype)
    y = np.zeros({0: m, 1: n, 2: 1}[way], _NUMPY[dtype])
    run(_REDUCE, {"a": a, "y": y}, [_REDUCTIONS.index(reduction), _DTYPES[dtype], m, n, way])
    function = {"sum": np.sum, "max": np.max, "min": np.min, "prod": np.prod}[reduction]
    want = function(_values(a, dtype), axis={0: 1, 1: 0, 2: None}[way])
    scale = function(np.abs(_values(a, dtype)))  # the result of a sum may be near zero
    if way == 2:
        want = 2 * want if reduction == "sum" else want * want if reduction == "prod" else want
    got = _values(y, dtype)
    tolerance = 3 * _ROUNDING.get(dtype, 0) * abs(float(scale))
    assert np.all(np.abs(got - want) <= tolerance)


_SCAN = """
KERNEL(k) {
  const Index m = args.size(2), n = args.size(3);
  const auto reduction = static_cast<Reduction>(args.size(0));
  const auto dtype = static_cast<Dtype>(args.size(1));
  if (pe.id() != 0) co_return;
  auto a = pe.buffer("a", dtype, {{M, m}, {N, 8}}, 2);
  auto c = pe.buffer("c", dtype, {{M, m}}, 1);
  co_await pe.fill(c.tile(), reduction == Reduction::prod ? 1 : 0, {{M, m}});
  for (Index j = 0; j < n; j += 8) {
    const Index some = least(8, n - j);
    Tile t = a.next();
    co_await pe.load(t, args.tensor(0), {{0, M, m}, {j, N, some}});
    co_await pe.scan(reduction, t, t, N, c.tile(), {{M, m}, {N, some}});
    co_await pe.store(args.tensor(1), {{0, M, m}, {j, N, some}}, t);
  }
}
"""


@pytest.mark.parametrize("dtype", ["f32", "i32"])
@pytest.mark.parametrize("reduction", ["sum", "prod", "max"])
def test_scan_goes_on_over_tiles(reduction: str, dtype: str) -> None:
    rng = np.random.default_rng(4)
    a = np.abs(_draw(rng, (3, 29), dtype)) if reduction == "max" else _draw(rng, (3, 29), dtype)
    if reduction == "prod":
        a = np.sign(a).astype(a.dtype)
    y = np.zeros_like(a)
    run(_SCAN, {"a": a, "y": y}, [_REDUCTIONS.index(reduction), _DTYPES[dtype], 3, 29])
    function = {"sum": np.add, "prod": np.multiply, "max": np.maximum}[reduction]
    want = function.accumulate(_values(a, dtype), axis=1)
    np.testing.assert_allclose(_values(y, dtype), want, rtol=1e-6, atol=1e-5)


_MATMUL = """
KERNEL(k) {
  const Index m = args.size(1), n = args.size(2), k = args.size(3);
  const auto dtype = static_cast<Dtype>(args.size(0));
  const auto wide = dtype == Dtype::i32 ? Dtype::i32 : Dtype::f32;
  if (pe.id() != 0) co_return;
  auto a = pe.buffer("a", dtype, {{P, 2}, {M, m}, {K, k}}, 1);
  auto b = pe.buffer("b", dtype, {{P, 2}, {K, k}, {N, n}}, 1);
  auto c = pe.buffer("c", wide, {{P, 2}, {N, n}, {M, m}}, 1);
  co_await pe.load(a.tile(), args.tensor(0), {{0, P, 2}, {0, M, m}, {0, K, k}});
  co_await pe.load(b.tile(), args.tensor(1), {{0, P, 2}, {0, K, k}, {0, N, n}});
  const Box box{{P, 2}, {M, m}, {N, n}, {K, k}};
  co_await pe.matmul(c.tile(), a.tile(), b.tile(), box, false);
  co_await pe.matmul(c.tile(), a.tile(), b.tile(), box, true);
  co_await pe.store(args.tensor(2), {{0, P, 2}, {0, M, m}, {0, N, n}}, c.tile());
}
"""


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "i32"])
@pytest.mark.parametrize("shape", [(1, 1, 1), (13, 9, 31), (32, 17, 40)])
def test_matmul_equals_numpy(shape, dtype: str) -> None:
    rng = np.random.default_rng(5)
    m, n, k = shape
    a, b = _draw(rng, (2, m, k), dtype), _draw(rng, (2, k, n), dtype)
    y = np.zeros((2, m, n), np.int32 if dtype == "i32" else np.float32)
    run(_MATMUL, {"a": a, "b": b, "y": y}, [_DTYPES[dtype], m, n, k])
    exact_a, exact_b = _values(a, dtype), _values(b, dtype)
    bound = 2 * k * 2.0**-23 * (np.abs(exact_a) @ np.abs(exact_b)) + 1e-30
    assert np.all(np.abs(y - 2 * (exact_a @ exact_b)) <= (0 if dtype == "i32" else bound))
