"""Specs in which every pointwise function stands, with inputs at its limits. For tests."""

from __future__ import annotations

import numpy as np

from ir.functions import POINTWISE
from ir.parse.parse import parse_spec
from ir.reference.rounding import HELD_AS, round_to
from ir.spec import Spec

FLOAT_ONE = tuple(
    f.name
    for f in POINTWISE.values()
    if f.arity == 1 and f.kind in ("float", "arithmetic") and not f.operator
)
TESTS = ("isnan", "isinf", "isfinite")
TWO = {  # of floats x and w
    "atan2": "atan2(x[m], w[m])",
    "fmod": "fmod(x[m], w[m])",
    "mod": "x[m] % w[m]",
    "floordiv": "x[m] // w[m]",
    "pow": "x[m] ** w[m]",
    "cube": "x[m] ** 3",
    "div": "x[m] / w[m]",
    "minimum": "minimum(x[m], w[m])",
    "maximum": "maximum(x[m], w[m])",
    "least": "minimum(x[m], 1.0)",
    "where": "where(x[m] < w[m], x[m], -w[m])",
}
WHOLE = {  # of integers i and j, none of them 0
    "add": "i[m] + j[m]",
    "sub": "i[m] - j[m]",
    "mul": "i[m] * j[m]",
    "floordiv": "i[m] // j[m]",
    "floordiv_by": "i[m] // -7",
    "mod": "i[m] % j[m]",
    "fmod": "fmod(i[m], j[m])",
    "pow": "(i[m] % 9 - 4) ** (j[m] % 12 - 2)",
    "cube": "(i[m] % 100) ** 3",
    "and": "i[m] & j[m]",
    "or": "i[m] | j[m]",
    "xor": "i[m] ^ j[m]",
    "not": "~i[m]",
    "shl": "i[m] << (j[m] & 7)",
    "shr": "i[m] >> (j[m] & 7)",
    "masked": "(i[m] & 255 | 256) ^ 7",
    "minimum": "minimum(i[m], j[m])",
    "maximum": "maximum(i[m], j[m])",
    "abs": "abs(i[m])",
    "neg": "-i[m]",
    "sign": "sign(i[m])",
    "relu": "relu(i[m])",
    "square": "square(i[m])",
    "floor": "floor(i[m])",
    "ceil": "ceil(i[m])",
    "round": "round(i[m])",
    "trunc": "trunc(i[m])",
    "where": "where(i[m] < j[m], i[m], j[m])",
}
TRUTH = {
    "and": "b[m] & (i[m] > 0)",
    "or": "b[m] | (i[m] > 0)",
    "xor": "b[m] ^ (i[m] > 0)",
    "not": "~b[m]",
    "compare": "(i[m] < j[m]) ^ (i[m] >= 3)",
}
SHORT_INTEGERS = '''
def short(a: i8[M, K], b: u8[M, K], c: i16[M, K]) -> (
    i8[M, K], u8[M, K], i16[M, K], i32[M, K], f32[M, K], u8[M, K], i32[M, K], b8[M, K],
    i64[M, K], i8[M, K], i8[M, K], i8[M], u8[M], i32[M], i16[M, K], i32[M],
):
    """All."""
    added[m, k] = a[m, k] + b[m, k]
    transposed[m, k] = ~b[m, k]
    squared[m, k] = c[m, k] * c[m, k]
    wide[m, k] = a[m, k] * b[m, k] - c[m, k]
    halved[m, k] = f32(a[m, k]) * 0.5 + b[m, k]
    cut[m, k] = u8(f32(c[m, k]) * 3.7)
    low[m, k] = u8(c[m, k])
    more[m, k] = low[m, k] + 1
    less[m, k] = a[m, k] < b[m, k]
    long[m, k] = i64(i8(c[m, k]))
    chosen[m, k] = where(less[m, k], a[m, k], i8(b[m, k]))
    masked[m, k] = a[m, k] & 15 ^ b[m, k] >> 4
    most[m] = max(a[m, k], k)
    least[m] = min(b[m, k], k)
    total[m] = sum(c[m, k], k)
    running[m, k] = cumsum(b[m, k], k)
    place[m] = argmax(c[m, k], k)
    return (
        added, transposed, squared, wide, halved, cut, more, less, long, chosen, masked, most, least,
        total, running, place,
    )
'''
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1e-20, 300.0, -300.0, np.inf, -np.inf, np.nan)


def float_spec(dtype: str) -> Spec:
    """One output for each function of floats: f64 of f64, else f32."""
    result = "f64" if dtype == "f64" else "f32"
    equations = {f: f"{f}(x[m])" for f in FLOAT_ONE} | TWO
    if result != dtype:
        for name, text in equations.items():
            equations[name] = text.replace("x[m]", "f32(x[m])").replace("w[m]", "f32(w[m])")
    made = {f"y_{n}": (t, result) for n, t in equations.items()}
    made |= {f"y_{f}": (f"{f}(x[m])", "b8") for f in TESTS}
    return _spec(made, f"x: {dtype}[M], w: {dtype}[M]")


def integer_spec(dtype: str) -> Spec:
    """One output for each function of integers and of truth values, and uniform numbers."""
    made = {f"y_{n}": (t, dtype) for n, t in WHOLE.items()}
    made |= {f"t_{n}": (t, "b8") for n, t in TRUTH.items()}
    made["u_read"] = ("uniform(s[0], i[m] * 3 + m)", "f32")
    made["u_index"] = ("uniform(1234, m * 3 + 1)", "f32")
    made["u_long"] = ("uniform(-5, i64(i[m]) << 20)", "f32")
    size = "sqrt(-2.0 * log(1.0 - uniform(s[0], 2 * m)))"
    made["n_read"] = (f"{size} * cos(6.283185307179586 * uniform(s[0], 2 * m + 1))", "f32")
    return _spec(made, f"i: {dtype}[M], j: {dtype}[M], b: b8[M], s: i64[1]")


def short_spec() -> Spec:
    """Integers of 8 and 16 bits: computed with as i32, wrapped where they are stored or cast."""
    return parse_spec(SHORT_INTEGERS)


def short_inputs(rows: int, columns: int) -> dict[str, np.ndarray]:
    """a, b and c, over all that their dtypes hold."""
    rng = np.random.default_rng(5)
    ends = {"a": ("i8", -128, 128), "b": ("u8", 0, 256), "c": ("i16", -(2**15), 2**15)}
    return {
        n: rng.integers(low, high, (rows, columns)).astype(HELD_AS[dtype])
        for n, (dtype, low, high) in ends.items()
    }


def float_inputs(dtype: str, count: int) -> dict[str, np.ndarray]:
    """x and w: all pairs of special values and then random ones; `count` is at least 144."""
    rng = np.random.default_rng(3)
    drawn = rng.standard_normal((2, count)) * np.where(np.arange(count) % 3, 1.0, 20.0)
    pairs = np.array([(a, b) for a in SPECIAL for b in SPECIAL]).T
    drawn[:, : pairs.shape[1]] = pairs
    return {n: round_to(a, dtype) for n, a in zip("xw", drawn, strict=True)}


def integer_inputs(dtype: str, count: int) -> dict[str, np.ndarray]:
    """i, j, b and s: i and j are not 0, nor is what is made of them beyond their dtype."""
    rng = np.random.default_rng(4)
    most = 2**31 if dtype == "i64" else 2**15
    made = {n: rng.integers(1, most, count) * rng.choice((-1, 1), count) for n in "ij"}
    made["j"][::2] %= 11
    made["j"][made["j"] == 0] = -3
    made |= {"b": rng.random(count) < 0.5, "s": np.array([0x299F31D0A4093822])}
    dtypes = {"i": dtype, "j": dtype, "b": "b8", "s": "i64"}
    return {n: round_to(a, dtypes[n]) for n, a in made.items()}


def _spec(made: dict[str, tuple[str, str]], inputs: str) -> Spec:
    lines = "".join(f"    {n}[m] = {text}\n" for n, (text, _) in made.items())
    outputs = ", ".join(f"{dtype}[M]" for _, dtype in made.values())
    head = f'def functions({inputs}) -> ({outputs}):\n    """All."""\n'
    return parse_spec(f"{head}{lines}    return {', '.join(made)}\n")
