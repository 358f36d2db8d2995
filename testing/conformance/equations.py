"""Cases of every sort of equation: reductions, scans, gathers, windows, ranges, searches, scatters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from ir.functions import SCANS
from ir.print import workload_text
from ir.workload import Sizes
from testing.conformance.case import Case
from testing.conformance.kernels import check_lines, equations, kernel
from testing.samples.samples import RECURRENT, workload

ROWS = ({"M": 5, "K": 67}, {"M": 1, "K": 1}, {"M": 33, "K": 16})
TILED = "tile(m, size=4)\ntile(k, size=16)\nplace(m.outer, level=grid)"
# Formats of what is searched for, and of the sorted borders.
SEARCHED = (
    *(("f32", "f32"), ("i32", "i32"), ("i64", "i64")),
    *(("bf16", "f32"), ("f16", "f16"), ("i32", "f32")),
)
ACROSS = "tile(m, size=2)\nplace(m.outer, level=grid)"
FLAGS = {
    "": "",
    "_back": ", reverse=True",
    "_before": ", exclusive=True",
    "_after": ", reverse=True, exclusive=True",
}


def equation_cases() -> Iterator[Case]:
    """All of them."""
    yield from _reductions()
    yield from _scans()
    yield from _gathers()
    yield from _windows()
    yield from _ranges()
    yield from _parts()
    yield from _scatters()
    yield from _recurrences()


def _reductions() -> Iterator[Case]:
    """Along the last axis, the first, and both at once, of floats, integers and truth values."""
    for dtype in ("f32", "f16", "i32", "i64"):
        whole = dtype.startswith("i")
        wide = dtype if whole else "f32"
        x = "x[m, k]" if whole else "f32(x[m, k])"
        factor = f"where({x} > 0, 1, -1)" if whole else f"({x} * 0.1 + 1.0)"
        rows = {f"r_{f}": f"{f}({x}, k)" for f in ("sum", "max", "min")}
        rows["r_prod"] = f"prod({factor}, k)"
        columns = {f"c_{f}": f"{f}({x}, m)" for f in ("sum", "max", "min")}
        places = {f"p_{f}": f"{f}(x[m, k], k)" for f in ("argmax", "argmin")}
        truths = {f"t_{f}": f"{f}({x} > 0, k)" for f in ("any", "all")}
        outputs = equations(rows, wide, "m", "M") | equations(columns, wide, "k", "K")
        outputs |= equations(places, "i32", "m", "M") | equations(truths, "b8", "m", "M")
        text = kernel(f"x: {dtype}[M, K]", outputs, ROWS)
        yield Case(f"reductions of {dtype}", text, ("reduction",), "plain")
        if dtype in ("f32", "i64"):  # whose least number starts a maximum
            features = ("reduction", "long constant") if dtype == "i64" else ("reduction",)
            yield Case(f"reductions of {dtype}, tiled", text, features, TILED)
    outputs = equations({"two": "sum(x[m, k, n] * w[k], k, n)"}, "f32", "m", "M")
    outputs |= equations({"mid": "max(x[m, k, n], k)"}, "f32", "m, n", "M, N")
    outputs |= equations({"first": "argmin(x[m, k, n], m)"}, "i32", "k, n", "K, N")
    sizes = ({"M": 4, "K": 9, "N": 21}, {"M": 1, "K": 1, "N": 1})
    text = kernel("x: f32[M, K, N], w: f32[K]", outputs, sizes)
    yield Case("reductions over several axes", text, ("reduction",))
    whole = equations({"place": "argmax(x[k], k)"}, "i32", "()", "()")
    whole |= equations({"total": "sum(x[k], k)", "most": "max(x[k], k)"}, "f32", "()", "()")
    text = kernel("x: f32[K]", whole, ({"K": 37}, {"K": 1}))
    yield Case("reductions to single numbers", text, ("reduction",), "plain")


def _scans() -> Iterator[Case]:
    """Each scan with each of its flags, along the last axis and the first."""
    for dtype in ("f32", "i32", "i64"):
        value = "x[m, k]" if dtype != "f32" else "(x[m, k] * 0.2 + 1.0)"
        texts = {
            f"y_{scan}{name}": f"{scan}({value}, k{flag})"
            for scan in SCANS
            for name, flag in FLAGS.items()
            if not (dtype != "f32" and (scan == "cumprod" or name in ("_before", "_after")))
        }
        outputs = equations(texts, dtype, "m, k", "M, K")
        if dtype == "f32":
            rows = kernel(f"x: {dtype}[M, K]", outputs, ROWS)
            yield Case("scans of f32, tiled", rows, ("scan",), f"{ACROSS}\ntile(k, size=16)")
            outputs |= equations({"down": "cumsum(x[m, k], m)"}, dtype, "m, k", "M, K")
        text = kernel(f"x: {dtype}[M, K]", outputs, ROWS)
        yield Case(f"scans of {dtype}, plain", text, ("scan",), "plain")
        if dtype != "f32":
            yield Case(f"scans of {dtype}, tiled", text, ("scan",), f"{ACROSS}\ntile(k, size=16)")
        for scan, sign in (("cummin", 1), ("cummax", -1)):
            text = kernel(
                f"x: {dtype}[M, K]",
                equations({"y": f"{scan}(x[m, k], k)"}, dtype, "m, k", "M, K"),
                ({"M": 3, "K": 9},),
            )
            yield Case(
                f"{scan} of {dtype} on one side of zero",
                text,
                ("scan",),
                inputs=lambda sizes, sign=sign, dtype=dtype: _one_sided(sizes, sign, dtype),
            )


def _one_sided(sizes: Sizes, sign: int, dtype: str) -> Mapping[str, np.ndarray]:
    """Numbers with which a scan that begins at 0 would never change its result."""
    drawn = np.random.default_rng(0).integers(5, 90, (sizes["M"], sizes["K"]))
    return {"x": (sign * drawn).astype({"f32": "f4", "i32": "i4", "i64": "i8"}[dtype])}


def _gathers() -> Iterator[Case]:
    sizes = ({"N": 37, "V": 11, "D": 21, "L": 6}, {"N": 1, "V": 1, "D": 1, "L": 1})
    short = tuple({name: each[name] for name in "NVD"} for each in sizes)
    for dtype in ("i32", "i64", "i16", "u8"):
        inputs = f"x: f32[V, D], i: {dtype}[N]"
        outputs = equations({"rows": "x[i[n], d]"}, "f32", "n, d", "N, D")
        outputs |= equations({"transposed": "x[i[n], d] * 2.0"}, "f32", "d, n", "D, N")
        at = short
        if dtype in ("i32", "i64"):
            at, inputs = sizes, f"{inputs}, j: {dtype}[L]"
            outputs |= equations({"twice": "i[j[l]]"}, dtype, "l", "L")
            outputs |= equations({"dot": "sum(x[i[n], d] * x[0, d], d)"}, "f32", "n", "N")
            outputs |= equations({"one": "pad(x[i[n] - 1, d], 0.5)"}, "f32", "n, d", "N, D")
        yield Case(f"gathers by {dtype}", kernel(inputs, outputs, at), ("gather",))
    inputs = "x: f32[V, D], i: i32[N], j: i32[N], p: i32[L]"
    outputs = equations({"pairs": "x[i[n], j[n]]"}, "f32", "n", "N")
    outputs |= equations({"grid": "x[i[n], p[l] % D]"}, "f32", "n, l", "N, L")
    outputs |= equations({"far": "pad(x[2 * i[n] - 3, d], -1.0)"}, "f32", "n, d", "N, D")
    for schedule in ("plain", "autoschedule"):
        text = kernel(inputs, outputs, sizes)
        yield Case(f"gathers by two indices, {schedule}", text, ("gather",), schedule)
    inputs = "x: f32[M, K]"
    outputs = equations(
        {
            "mirrored": "x[m, K - 1 - k]",
            "halved": "x[m, k // 2]",
            "reduced": "x[m, (3 * k + 1) % K]",
            "diagonal": "x[m, m % K] + x[m, k]",
        },
        "f32",
        "m, k",
        "M, K",
    )
    yield Case("gathers at computed places", kernel(inputs, outputs, ROWS), ("gather",))


def _windows() -> Iterator[Case]:
    """Shifted, strided and dilated reads, and what they read outside."""
    outputs = equations(
        {
            "later": "pad(x[m, k + 3], -inf)",
            "earlier": "pad(x[m, k - 1], 1.5)",
            "both": "pad(x[m - 1, k + 1], 0.0)",
            "between": "pad(x[m, k - 1], 0.0) - 2.0 * x[m, k] + pad(x[m, k + 1], 0.0)",
            "spread": "sum(pad(x[m, k + 2 * i - 2], 0.0), i=3)",
            "most": "max(pad(x[m, k + i - 1], -inf), i=3)",
            "least": "min(pad(x[m + j - 1, k + i - 1], inf), i=3, j=3)",
        },
        "f32",
        "m, k",
        "M, K",
    )
    for schedule in ("plain", TILED):
        named = "tiled" if "tile" in schedule else schedule
        yield Case(
            f"windows, {named}", kernel("x: f32[M, K]", outputs, ROWS), ("window",), schedule
        )
    strided = equations(
        {"pooled": "max(pad(x[m, 2 * p + i - 1], -inf), i=3)"}, "f32", "m, p", "M, P"
    )
    strided |= equations({"even": "x[m, 2 * p]"}, "f32", "m, p", "M, P")
    text = kernel("x: f32[M, K], P=(K - 1) // 2 + 1", strided, ROWS)
    yield Case("strided windows", text, ("window",))
    convolved = {
        "y": (
            "f32[B, O, L]",
            "y[b, o, l] = sum(f32(pad(x[b, c, l + i - 1], 0.0)) * f32(w[o, c, i]), c, i)",
        )
    }
    sizes = ({"B": 2, "C": 5, "O": 9, "L": 19}, {"B": 1, "C": 1, "O": 1, "L": 1})
    text = kernel("x: f16[B, C, L], w: f16[O, C, 3]", convolved, sizes)
    yield Case("a convolution", text, ("window", "matmul"))
    rows = "tile(b, size=1)\ntile(o, size=8)\ntile(l, size=8)\nplace(b.outer, level=grid)"
    yield Case("a convolution whose window is one region", text, ("window",), rows)


def _ranges() -> Iterator[Case]:
    """Reductions whose bounds are data, and searches in sorted tensors."""
    sizes = ({"B": 5, "L": 23, "V": 9, "D": 17}, {"B": 1, "L": 1, "V": 1, "D": 1})
    inputs = "table: f32[V, D], idx: i32[L], w: f32[L], offsets: i32[B + 1]"
    bounds = "l=range(offsets[b], offsets[b + 1])"
    outputs = equations({"bag": f"sum(table[idx[l], d], {bounds})"}, "f32", "b, d", "B, D")
    outputs |= equations({"scaled": f"sum(w[l] * 2.0, {bounds})"}, "f32", "b", "B")
    text = kernel(inputs, outputs, sizes)
    for schedule in ("plain", "tile(b, size=1)\ntile(l, size=8)\nplace(b.outer, level=grid)"):
        named = "tiled" if "tile" in schedule else schedule
        yield Case(f"ranges of data, {named}", text, ("jagged", "gather"), schedule)
    most = equations({"y": f"max(w[l], {bounds})"}, "f32", "b", "B")
    text = kernel("w: f32[L], offsets: i32[B + 1]", most, ({"B": 5, "L": 23},))
    yield Case("a maximum over ranges of data", text, ("jagged",))
    twice = equations({"y": f"sum(exp(w[l] - most[b]), {bounds})"}, "f32", "b", "B")
    text = kernel(
        "w: f32[L], offsets: i32[B + 1]",
        twice,
        ({"B": 5, "L": 23},),
        f"most[b] = max(w[l], {bounds})",
    )
    serpentine = "tile(b, size=1)\ntile(l, size=8)\nplace(b.outer, level=grid)\nserpentine(l.outer)"
    yield Case("ranges of data from their ends", text, ("jagged", "mapping"), serpentine)
    for dtype, borders in SEARCHED:
        outputs = equations({"place": "bucketize(x[m, k], borders)"}, "i32", "m, k", "M, K")
        text = kernel(f"x: {dtype}[M, K], borders: {borders}[U]", outputs, ())
        sizes = ({"M": 5, "K": 19, "U": 13}, {"M": 1, "K": 1, "U": 1})
        of = "" if dtype == borders else f" for {dtype}"
        yield Case(f"a search in {borders}{of}", text + check_lines(sizes), ("search",))
    ranked = "where(k < bucketize(x[i, m, k] * 2.0, borders), 1.0, 2.0)"
    most = {"most": f"cummax({ranked}, m, exclusive=True)"}
    sizes = ({"M": 39, "K": 5, "U": 13}, {"M": 1, "K": 1, "U": 1})
    outputs = equations(most, "f32", "m, k, i", "M, K, 3")
    text = kernel("x: f16[3, M, K], borders: f32[U]", outputs, sizes)
    yield Case("a search of a transposed tile", text, ("search", "scan"), "plain")
    found = workload("map_id")
    blocks = "tile(b, size=16)\nplace(b.outer, level=grid)"
    text = workload_text(type(found)(found.spec, None, found.checks))
    yield Case("a search and what is found", text, ("search", "gather"), blocks)


def _parts() -> Iterator[Case]:
    """Sums over parts of ranges, which indices bound."""
    first = "r=range(0, k // 4 % 3 + 1), s=range(0, k // 8 % 2 + 1)"
    parts = equations({"y": f"sum(x[m, r, s] * w[k, r, s], {first})"}, "f32", "m, k", "M, K")
    last = "sum(x[m, t, u] * w[k, t, u], u, t=range(k // 4 % 3, 3))"
    parts |= equations({"z": last}, "f32", "m, k", "M, K")
    text = kernel("x: f32[M, 3, 2], w: f32[K, 3, 2]", parts, ({"M": 9, "K": 37}, {"M": 1, "K": 1}))
    walked = "tile(m, size=8)\ntile(k, size=4)\nplace(k.outer, level=grid)\n"
    walked += "".join(f"tile({i}, size=1)\n" for i in "rst")
    yield Case("parts of ranges", text, ("jagged",), walked)


def _scatters() -> Iterator[Case]:
    """Updates gathered at their places, on every machine, and added to memory where it can."""
    sizes = ({"L": 37, "D": 13, "V": 5}, {"L": 1, "D": 1, "V": 1}, {"L": 130, "D": 33, "V": 70})
    gradient = kernel(
        "g: f32[L, D], idx: i32[L], table: f32[V, D]",
        {"y": ("f32[V, D]", "y[v, d] = grad[v, d] + table[v, d]")},
        sizes,
        "grad[idx[l], d] += g[l, d] * 2.0",
    )
    rows = kernel(
        "g: bf16[L, D], idx: i64[L]", {"y": ("f32[V, D]", "y[idx[l], d] += f32(g[l, d])")}, sizes
    )
    counts = kernel(
        "bins: i32[L], seen: b8[L]",
        {"y": ("i32[V]", "y[bins[l]] += i32(seen[l])")},
        ({"L": 301, "V": 7}, {"L": 1, "V": 1}),
    )
    for name, text in (("gradient", gradient), ("rows", rows), ("counts", counts)):
        yield Case(f"scatter, {name}", text, ("scatter",))
    table = "tile(l, size=16)\ntile(d, size=32)\n"
    decided = {
        "gradient": (gradient, f"atomic(grad)\n{table}tile(grad_0, size=8)\ntile(v, size=4)"),
        "whole rows": (
            rows,
            "atomic(y)\ntile(l, size=8)\ntile(y_0, size=8)\nthreads(y, count=128)",
        ),
        "one by one": (rows, "atomic(y)\ntile(l, size=1)\ntile(y_0, size=1)"),
        "persistent": (rows, f"atomic(y)\n{table}tile(y_0, size=8)\npersistent(y, programs=1)"),
        "counts": (counts, "atomic(y)\ntile(l, size=128)\ntile(y_0, size=32)"),
        "counts, whole": (counts, "atomic(y)"),
    }
    for name, (text, schedule) in decided.items():
        yield Case(
            f"atomic, {name}",
            text,
            ("scatter", "atomic"),
            schedule,
            registers=True,
            orders=3,
        )


DECAYING = """
def decaying(x: f32[T, D, N], z: f32[T, D]) -> f32[T, D]:
    \"\"\"Rows added up, scaled as they were before each.\"\"\"
    a[t, d] = {reduction}(x[t, d, n], n)
    s[t, d] = {onto}
    y[t, d] = z[t, d] * pad(s[t - 1, d], 0.0)
    return y


tune(T=64, D=256, N=256)
check(T=9, D=32, N=100)
"""
STEP_OF_ROWS = """
def rows(x: f32[T, I], w: f32[J, I]) -> f32[T, J]:
    \"\"\"A product of each step, added up.\"\"\"
    a[t, j] = sum(x[t, i] * w[j, i], i)
    s[t, j] = pad(s[t - 1, j], 0.0) * 0.5 + a[t, j]
    h[t, j] = tanh(s[t, j]) + sigmoid(pad(h[t - 1, j], 0.0))
    return h


check(T=9, I=40, J=33)
"""
ONTO = {
    "sum": "pad(s[t - 1, d], 0.0) + a[t, d]",
    "max": "maximum(pad(s[t - 1, d], 0.0), a[t, d])",
}
ROW = "tile(j, size=16)\nplace(j.outer, level=grid)\ncompute(a, unit=matrix)"
WIDER = """
tile(t, size=1)
tile(b, size=1)
place(t.outer, level=grid)
place(b.outer, level=grid)
compute(gx, unit=matrix)
compute(a, unit=matrix)
"""


def _recurrences() -> Iterator[Case]:
    """Steps in order, backwards, any number of them, and steps that hand on what they hold."""
    for name in RECURRENT:
        work = workload(name)
        sizes = tuple(reversed(work.checks))
        text = workload_text(type(work)(work.spec, None, sizes))
        for schedule in ("plain", "autoschedule"):
            yield Case(
                f"recurrence, {name}, {schedule}",
                text,
                ("recurrence",),
                schedule,
                everywhere=schedule == "autoschedule",
            )
    gru = workload("gru")
    steps = tuple({"T": t, "B": 2, "I": 3, "H": 5} for t in (9, 1, 2, 17))
    text = workload_text(type(gru)(gru.spec, None, steps))
    yield Case("recurrence, any number of steps", text, ("recurrence",), "plain", everywhere=True)
    for reduction, onto in ONTO.items():
        yield Case(
            f"recurrence, a {reduction} is handed on",
            DECAYING.format(reduction=reduction, onto=onto),
            ("recurrence",),
            "carry(s)\ntile(d, size=16)\nplace(d.outer, level=grid)",
            registers=True,
            compiled=True,
            everywhere=True,
        )
    for carried in (("carry(s)", "carry(h)"), ("carry(h)",), ()):
        yield Case(
            f"recurrence, one row of a matmul, {len(carried)} carried",
            STEP_OF_ROWS,
            ("recurrence", "matmul"),
            "\n".join((*carried, ROW)),
            registers=True,
            compiled=True,
            everywhere=True,
        )
    rnn = workload("rnn")
    text = workload_text(type(rnn)(rnn.spec, None, rnn.checks[-1:]))
    yield Case("recurrence, one row of a wider block", text, ("recurrence", "matmul"), WIDER)
