"""Cases of every pointwise function at its edges, of all dtypes, and of what decides with NaN."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from ir.print import spec_text
from ir.reference.rounding import round_to
from ir.spec import DTYPES, FLOATS, GIVEN, INNER
from testing.conformance.case import Case, Inputs
from testing.conformance.kernels import check_lines, equations, kernel
from testing.samples.function_samples import (
    FLOAT_ONE,
    TESTS,
    TRUTH,
    TWO,
    WHOLE,
    float_inputs,
    float_spec,
    integer_inputs,
    integer_spec,
    short_inputs,
    short_spec,
)
from testing.samples.special_rows import NAMES, extrema, special_rows

COUNT = 400  # more than all pairs of special values
FLAT = "tile(m, size=64)\nplace(m.outer, level=grid)"
TILED = "tile(m, size=4)\ntile(k, size=8)\nplace(m.outer, level=grid)"
SHAPES = ((16, 24), (9, 30), (1, 1), (8, 2), (9, 1), (5, 17), (7, 8), (8, 29), (3, 9), (1, 30))
ROWS = tuple({"M": rows, "K": columns} for rows, columns in SHAPES)
LEAST = 1e-30  # absolute error of a tiny result: sin(1e-20) is no zero
CANCELS = ("y_gelu",)  # whose tail is a difference of numbers near 1
OPEN_AT_MINUS_INFINITY = ("y_silu", "y_gelu")  # 0 in the limit, NaN in IEEE 754's arithmetic
SPECIAL = {  # names, and the schedule
    "tiled": (NAMES, TILED),
    "online": (("argmax",), f"{TILED}\nonline(y_argmax_top, into=y_argmax)"),
    "found": (("argmin", "cummax", "max"), "autoschedule"),
}
SPLIT = {"split_k": (("max",), f"{TILED}\nsplit_k(y_max, over=k, parts=2)")}


def function_cases() -> Iterator[Case]:
    """Floats, integers and truth values; a case for each dtype of the language."""
    for dtype in ("f32", "bf16", "f16", "f64"):
        yield _of_floats(dtype)
    for dtype in ("i32", "i64"):
        yield _of_integers(dtype)
    text = spec_text(short_spec()) + check_lines(({"M": 9, "K": 30},))
    yield Case(
        "short integers",
        text,
        ("integer",),
        TILED,
        lambda sizes: short_inputs(sizes["M"], sizes["K"]),
        compiled=True,
    )
    yield from _comparisons()
    yield from _of_scalars()
    for dtype in DTYPES:
        if dtype not in INNER:
            yield _of_given(dtype) if dtype in GIVEN else _of_dtype(dtype)
    yield Case(
        "a constant that no float holds",
        kernel("x: i64[M]", {"y": ("i64[M]", "y[m] = x[m] + 9007199254740993")}, ({"M": 9},)),
        ("long constant",),
    )


def special_cases() -> Iterator[Case]:
    """Rows with NaN, infinities and ties, at several tiles of a row."""
    for registers, table in ((False, SPECIAL), (True, SPLIT)):
        for name, (names, schedule) in table.items():
            for dtype in ("f32", "bf16"):
                yield Case(
                    f"special rows, {name}, {dtype}",
                    spec_text(extrema(*names, dtype=dtype)) + check_lines(ROWS),
                    ("reduction", "scan"),
                    schedule,
                    _rows(dtype),
                    _exactly,
                    registers=registers,
                    everywhere=True,
                )


def _rows(dtype: str) -> Inputs:
    """Other rows at each size."""

    def rows(sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
        x = special_rows(sizes["M"], sizes["K"], sizes["M"] * 7 + sizes["K"])
        return {"x": x if dtype == "f32" else round_to(x, dtype)}

    return rows


def _exactly(name: str) -> tuple[float, float]:
    return 0.0, 0.0


def _of_floats(dtype: str) -> Case:
    def near(name: str) -> tuple[float, float]:
        most = 1e-12 if dtype == "f64" else 2e-6
        return most, most / 10 if name in CANCELS else LEAST

    def unsure(inputs: Mapping[str, np.ndarray], name: str) -> np.ndarray | bool:
        return np.isneginf(inputs["x"]) if name in OPEN_AT_MINUS_INFINITY else False

    text = spec_text(float_spec(dtype)) + check_lines(({"M": COUNT},))
    return Case(
        f"functions of {dtype}",
        text,
        ("function",),
        FLAT,
        lambda sizes: float_inputs(dtype, sizes["M"]),
        near,
        free=unsure,
        compiled=True,
    )


def _of_integers(dtype: str) -> Case:
    def near(name: str) -> tuple[float, float]:
        return (2e-5, 2e-6) if name.startswith("n_") else (0.0, 0.0)

    text = spec_text(integer_spec(dtype)) + check_lines(({"M": COUNT},))
    given: Callable[..., dict] = integer_inputs
    return Case(
        f"functions of {dtype}",
        text,
        ("integer", "random"),
        FLAT,
        lambda sizes: given(dtype, sizes["M"]),
        near,
        compiled=True,
    )


def _comparisons() -> Iterator[Case]:
    """Each comparison, of floats with NaN and infinities and of integers, and of equal numbers."""
    signs = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
    for dtype in ("f32", "i32", "i64"):
        texts = {f"c_{n}": f"x[m] {sign} w[m]" for n, sign in signs.items()}
        texts |= {f"s_{n}": f"x[m] {sign} x[m]" for n, sign in signs.items()}
        text = kernel(
            f"x: {dtype}[M], w: {dtype}[M]", equations(texts, "b8", "m", "M"), ({"M": COUNT},)
        )
        yield Case(f"comparisons of {dtype}", text, ("function",), FLAT, _compared(dtype))


def _compared(dtype: str) -> Inputs:
    def pairs(sizes: Mapping[str, int]) -> Mapping[str, np.ndarray]:
        if dtype == "f32":
            return float_inputs(dtype, sizes["M"])
        made = integer_inputs(dtype, sizes["M"])
        x, w = made["i"], made["j"].copy()
        w[1::3] = x[1::3]
        return {"x": x, "w": w}

    return pairs


def _of_scalars() -> Iterator[Case]:
    """Functions of sizes and constants alone: one number for the whole launch."""
    x, w = "(2.0 / (M + 1))", "(2.0 / (M + 1) - 1.5)"
    calls = {f: f"{f}({x})" for f in FLOAT_ONE} | {f"n_{f}": f"{f}({w})" for f in FLOAT_ONE}
    calls |= TWO | {f"t_{f}": f"where({f}({w}), 1.0, 2.0)" for f in TESTS}
    i, j = "(M - 4)", "(3 - 2 * M)"
    texts = {f"y_{n}": f"z[m] + {t}" for n, t in _replaced(calls, x=x, w=w).items()}
    sizes = ({"M": 3}, {"M": 1}, {"M": 9})
    zeros = {"f32": "f4", "i32": "i4"}

    def given(dtype: str) -> Inputs:
        return lambda sizes: {"z": np.zeros(sizes["M"], zeros[dtype])}

    yield Case(
        "functions of scalars, floats",
        kernel("z: f32[M]", equations(texts, "f32", "m", "M"), sizes),
        ("function",),
        FLAT,
        given("f32"),
        lambda name: (2e-6, 2e-7),
        compiled=True,
    )
    whole = _replaced(WHOLE, i=i, j=j)
    whole |= {
        f"t_{n}": f"where({t}, 1, 2)" for n, t in _replaced(TRUTH, i=i, j=j, b="(M > 2)").items()
    }
    whole |= {f"c_{d}": f"i32({d}(300 * M - 5000))" for d in ("i8", "u8", "i16", "b8")}
    texts = {f"y_{n}": f"z[m] + ({t})" for n, t in whole.items()}
    yield Case(
        "functions of scalars, integers",
        kernel("z: i32[M]", equations(texts, "i32", "m", "M"), sizes),
        ("function", "integer"),
        FLAT,
        given("i32"),
        compiled=True,
    )


def _replaced(texts: Mapping[str, str], **values: str) -> dict[str, str]:
    """Expressions with other operands than tensors: x[m] becomes what is given for x."""
    made = dict(texts)
    for name, value in values.items():
        made = {n: re.sub(rf"\b{name}\[m\]", value, t) for n, t in made.items()}
    return made


def _of_given(dtype: str) -> Case:
    """A tensor of a dtype that only inputs have, alone and times others."""
    return Case(
        f"dtype {dtype}",
        kernel(
            f"x: {dtype}[M], w: f32[M]",
            {
                "y": ("f32[M]", "y[m] = f32(x[m]) * w[m]"),
                "z": ("f32[M]", "z[m] = x[m] + x[m]"),
                "t": ("b8[M]", "t[m] = x[m] > 1.0"),
            },
            ({"M": 67}, {"M": 1}),
        ),
        ("function",),
    )


def _of_dtype(dtype: str) -> Case:
    """A tensor of a dtype that is copied, and casts to it and from it."""
    value = "x[m]" if dtype in FLOATS else "f32(x[m])"
    wide = "f64" if dtype == "f64" else "f32"
    kept = "~x[m]" if dtype == "b8" else "x[m] + x[m]"
    more = {"chosen": "~where(w[m] > 0.0, True, False)"} if dtype == "b8" else {}
    cast = "w[m] > 0.0" if dtype == "b8" else f"{dtype}(w[m] * 3.0)"
    return Case(
        f"dtype {dtype}",
        kernel(
            f"x: {dtype}[M], w: f32[M]",
            equations({"same": kept, "to": cast, **more}, dtype, "m", "M")
            | equations({"wide": f"{wide}({value}) * 0.5"}, wide, "m", "M"),
            ({"M": 67}, {"M": 1}),
        ),
        ("function",),
    )
