"""Cheats by equations of further families of kernels: scans, activations, attention, bags. For tests."""

from __future__ import annotations

from collections.abc import Iterator

from tests.cheats.case import Case

_TANH = "0.5 * x[m, k] * (1.0 + tanh(0.7978845608028654 * (x[m, k] + 0.044715 * x[m, k] ** 3)))"
_ATTENTION = """s[m, n] = sum(q[m, d] * k[n, d], d)
c[m, n] = where(MASK, s[m, n], LOW)
mx[m] = max(c[m, n], n)
e[m, n] = exp(c[m, n] - mx[m])
t[m] = sum(e[m, n], n)
WEIGHTS
y[m, d] = a[m, d] / t[m]"""
_WEIGHED = "a[m, d] = sum(e[m, n] * v[n, d], n)"
_BAG = "y[b, d] = sum({}, l=range(o[b], o[b + 1]))"


def _attention(mask: str = "n <= m", low: str = "-inf", weights: str = _WEIGHED) -> str:
    text = _ATTENTION.replace("MASK", mask).replace("LOW", low)
    return text.replace("WEIGHTS", weights)


def cheats() -> list[Case]:
    """All of them."""
    return list(_all())


def honest() -> list[Case]:
    """Equal equations of the same families."""
    rows = (
        (
            "a scan of doubles, halved",
            "running",
            "z[m, k] = cumsum(x[m, k] * 2.0, k)\ny[m, k] = z[m, k] * 0.5",
            "powers of two are exact",
        ),
        (
            "gelu by the error function",
            "gelu_f32",
            "y[m, k] = 0.5 * x[m, k] * (1.0 + erf(x[m, k] * 0.7071067811865476))",
            "what gelu is",
        ),
        (
            "attention that is masked by a choice of positions",
            "causal",
            _attention("m >= n"),
            "the same mask",
        ),
        ("a bag of doubles, halved", "bag", _BAG.format("t[i[l], d] * 2.0") + "\n", "exact"),
    )
    found = []
    for name, kernel, equations, why in rows:
        if kernel == "bag":
            equations = (
                equations.replace("y[b, d]", "z[b, d]").strip() + "\ny[b, d] = z[b, d] * 0.5"
            )
        found.append(Case(name, why, kernel, "cuda", equations))
    return found


def _all() -> Iterator[Case]:
    rows = (
        (
            "a scan that restarts at 64",
            "running",
            "y[m, k] = cumsum(where(k < 64, x[m, k], 0.0), k)",
            "output `y`",
            5,
            "check sizes have no more than 64 columns",
        ),
        (
            "a scan without its own element",
            "running",
            "z[m, k] = cumsum(x[m, k], k)\ny[m, k] = z[m, k] - x[m, k]",
            "output `y`",
            10,
            "another function",
        ),
        (
            "a scan that drops NaN",
            "running",
            "y[m, k] = cumsum(where(isnan(x[m, k]), 0.0, x[m, k]), k)",
            "of the draw `nan`",
            6,
            "it hides what is not a number",
        ),
        (
            "gelu by tanh",
            "gelu_f32",
            f"y[m, k] = {_TANH}",
            "output `y`",
            7,
            "another function, near to it",
        ),
        (
            "gelu that is a relu beyond 4",
            "gelu_f32",
            "y[m, k] = where(abs(x[m, k]) > 4.0, maximum(x[m, k], 0.0), gelu(x[m, k]))",
            "output `y`",
            6,
            "normal inputs are hardly beyond 4",
        ),
        (
            "a mask that is off by one",
            "causal",
            _attention("(n < m) | (n == 0)"),
            "output `y`",
            10,
            "each row sees one position less",
        ),
        (
            "a mask by -30",
            "causal",
            _attention(low="-30.0"),
            "output `y`",
            6,
            "scores are seldom so low",
        ),
        (
            "a window of 64",
            "causal",
            _attention("(n <= m) & (n + 64 > m)"),
            "output `y`",
            5,
            "check sizes have no more than 64 positions",
        ),
        (
            "weights of f16",
            "causal",
            _attention(weights="h[m, n] = f16(e[m, n])\na[m, d] = sum(f32(h[m, n]) * v[n, d], n)"),
            "output `y`",
            7,
            "a coarser format than the spec's",
        ),
        (
            "bags of no more than 8",
            "bag",
            _BAG.format("where(l < o[b] + 8, t[i[l], d], 0.0)"),
            "output `y`",
            5,
            "bags of check sizes are short",
        ),
        (
            "bags without their last entry",
            "bag",
            _BAG.format("where(l < o[b + 1] - 1, t[i[l], d], 0.0)"),
            "output `y`",
            10,
            "less work",
        ),
        (
            "a place by f16",
            "place",
            "h[m, k] = f16(x[m, k])\ny[m] = argmax(f32(h[m, k]), k)",
            "of the draw|equal",
            7,
            "values that f16 does not tell apart",
        ),
        (
            "the least integer is 0",
            "whole",
            "y[m, k] = where(i[m, k] == -2147483648, 0, i[m, k] + j[m, k])",
            "of the draw `whole`",
            6,
            "the least integer is rare",
        ),
        (
            "rows in another order when there are many",
            "twice",
            "y[m, k] = where(M > 100, x[M - 1 - m, k], x[m, k]) * 2.0",
            "output `y`",
            5,
            "the same numbers elsewhere",
        ),
    )
    for name, kernel, equations, said, group, why in rows:
        yield Case(name, why, kernel, "cuda", equations, stage="check", said=said, group=group)
