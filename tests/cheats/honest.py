"""Honest oddities: equal equations and unusual sources that the evaluator accepts. For tests."""

from __future__ import annotations

from collections.abc import Iterator

from tests.cheats.case import Case

_MAX = "mx[m] = max(x[m, k], k)\n"
_SUM = "s[m] = sum(e[m, k], k)\n"
_MEAN = "t[m] = sum(x[m, k], k)\n"
_CENTRED = "c[m, k] = x[m, k] - t[m] / K\nv[m] = sum(c[m, k] ** 2, k)\n"
_EXP_BF16 = "e[m, k] = exp(f32(x[m, k]) - f32(mx[m]))\n"
LOG2E = 1.4426950408889634


def honest() -> list[Case]:
    """All of them."""
    return list(_all())


def _all() -> Iterator[Case]:
    for name, kernel, equations, why in (*_SOFTMAX, *_NORMS, *_PRODUCTS, *_SIMPLE, *_WHOLE):
        yield Case(name, why, kernel, "cuda", equations)
    for name, kernel, equations, why in (*_SOFTMAX[:4], *_NORMS[:3], *_SIMPLE[:3]):
        yield Case(f"{name}, on npu", why, kernel, "npu", equations)
    yield from _sources()


_SOFTMAX = (
    (
        "exp by exp2",
        "softmax",
        f"{_MAX}e[m, k] = exp2((x[m, k] - mx[m]) * {LOG2E})\n{_SUM}y[m, k] = e[m, k] / s[m]",
        "what GPUs have",
    ),
    (
        "a reciprocal",
        "softmax",
        f"{_MAX}e[m, k] = exp(x[m, k] - mx[m])\n{_SUM}r[m] = 1.0 / s[m]\ny[m, k] = e[m, k] * r[m]",
        "one division for each row",
    ),
    (
        "by the logarithm of the sum",
        "softmax",
        f"{_MAX}e[m, k] = exp(x[m, k] - mx[m])\n{_SUM}y[m, k] = exp((x[m, k] - mx[m]) - log(s[m]))",
        "no division at all",
    ),
    (
        "a maximum by a minimum",
        "softmax",
        f"mn[m] = min(-x[m, k], k)\ne[m, k] = exp(x[m, k] + mn[m])\n{_SUM}y[m, k] = e[m, k] / s[m]",
        "the same number",
    ),
    (
        "an epsilon that is nothing",
        "softmax",
        f"{_MAX}e[m, k] = exp(x[m, k] - mx[m])\n{_SUM}y[m, k] = e[m, k] / (s[m] + 1e-12)",
        "the sum is at least 1",
    ),
    (
        "a clamped difference",
        "softmax",
        f"{_MAX}e[m, k] = exp(maximum(x[m, k] - mx[m], -110.0))\n{_SUM}y[m, k] = e[m, k] / s[m]",
        "exp of less is 0 in f32",
    ),
    (
        "softmax of bf16 by exp2",
        "softmax_bf16",
        f"{_MAX}e[m, k] = exp2((f32(x[m, k]) - f32(mx[m])) * {LOG2E})\n{_SUM}"
        "y[m, k] = e[m, k] / s[m]",
        "what GPUs have",
    ),
    (
        "exponentials rounded to bf16",
        "softmax_bf16",
        f"{_MAX}{_EXP_BF16}{_SUM}h[m, k] = bf16(e[m, k])\ny[m, k] = f32(h[m, k]) / s[m]",
        "plain arithmetic rounds them too",
    ),
)
_NORMS = (
    (
        "a root and a division",
        "norm",
        f"{_MEAN}{_CENTRED}y[m, k] = c[m, k] / sqrt(v[m] / K + 1e-5) * g[k]",
        "the same within rounding",
    ),
    (
        "the weight first",
        "norm",
        f"{_MEAN}{_CENTRED}y[m, k] = c[m, k] * g[k] * rsqrt(v[m] / K + 1e-5)",
        "another order of factors",
    ),
    (
        "the mean by a factor",
        "norm",
        "t[m] = sum(x[m, k], k)\nc[m, k] = x[m, k] - t[m] * (1.0 / K)\nv[m] = sum(c[m, k] ** 2, k)\n"
        "y[m, k] = c[m, k] * rsqrt(v[m] * (1.0 / K) + 1e-5) * g[k]",
        "another rounding",
    ),
    (
        "a variance of differences to the first",
        "norm",
        "d[m, k] = x[m, k] - x[m, 0]\nt[m] = sum(d[m, k], k)\nc[m, k] = d[m, k] - t[m] / K\n"
        "v[m] = sum(c[m, k] ** 2, k)\ny[m, k] = c[m, k] * rsqrt(v[m] / K + 1e-5) * g[k]",
        "more exact than the spec",
    ),
    (
        "squares as products",
        "norm",
        f"{_MEAN}c[m, k] = x[m, k] - t[m] / K\nv[m] = sum(c[m, k] * c[m, k], k)\n"
        "y[m, k] = c[m, k] * rsqrt(v[m] / K + 1e-5) * g[k]",
        "the same",
    ),
    (
        "a norm of f16 by a root",
        "rms_f16",
        "q[m] = sum(f32(x[m, k]) * f32(x[m, k]), k)\ny[m, k] = f32(x[m, k]) / sqrt(q[m] / K + 1e-6)",
        "the same within rounding",
    ),
    (
        "a norm of f16, scaled",
        "rms_f16",
        "q[m] = sum((f32(x[m, k]) * 0.125) ** 2, k)\n"
        "y[m, k] = f32(x[m, k]) * rsqrt(q[m] * 64.0 / K + 1e-6)",
        "powers of two are exact",
    ),
)
_PRODUCTS = (
    ("operands exchanged", "matmul", "y[m, n] = sum(w[k, n] * x[m, k], k)", "the same"),
    (
        "a sum of two halves",
        "matmul",
        "a[m, n] = sum(where(k % 2 == 0, x[m, k], 0.0) * w[k, n], k)\n"
        "b[m, n] = sum(where(k % 2 == 1, x[m, k], 0.0) * w[k, n], k)\ny[m, n] = a[m, n] + b[m, n]",
        "another order of a sum",
    ),
    (
        "a product of bf16 that is scaled",
        "matmul_bf16",
        "a[m, n] = sum((f32(x[m, k]) * 0.5) * f32(w[k, n]), k)\ny[m, n] = a[m, n] * 2.0",
        "powers of two are exact",
    ),
    (
        "a product of bf16, rounded twice",
        "matmul_bf16",
        "a[m, n] = sum(f32(x[m, k]) * f32(w[k, n]), k)\nh[m, n] = bf16(a[m, n])\n"
        "y[m, n] = f32(h[m, n])",
        "the second rounding does nothing",
    ),
    (
        "a product of f16, negated twice",
        "matmul_f16",
        "a[m, n] = sum(f32(x[m, k]) * f32(w[k, n]), k)\ny[m, n] = -(-a[m, n])",
        "the same",
    ),
)
_SIMPLE = (
    ("a sum for a product", "twice", "y[m, k] = x[m, k] + x[m, k]", "the same"),
    ("a division by a half", "twice", "y[m, k] = x[m, k] / 0.5", "the same"),
    ("a negative twice", "twice", "y[m, k] = -(x[m, k] * -2.0)", "the same"),
    ("a difference", "twice", "y[m, k] = x[m, k] - -x[m, k]", "the same"),
    (
        "a shift by zero",
        "twice",
        "y[m, k] = (x[m, k] + 0.0) * 2.0",
        "the same but for the sign of 0",
    ),
    (
        "a choice of equals",
        "twice",
        "y[m, k] = where(x[m, k] > 0.0, x[m, k] * 2.0, x[m, k] + x[m, k])",
        "the same",
    ),
    (
        "three times by adding",
        "scale_f16",
        "y[m, k] = f32(x[m, k]) + f32(x[m, k]) + f32(x[m, k])",
        "f32 holds it exactly",
    ),
    (
        "three times in f16",
        "scale_f16",
        "h[m, k] = f16(f32(x[m, k]) * 3.0)\ny[m, k] = f32(h[m, k])",
        "the second rounding does nothing",
    ),
    ("a sum of negatives", "total", "a[m] = sum(-x[m, k], k)\ny[m] = -a[m]", "the same"),
    (
        "a sum of halves",
        "total",
        "a[m] = sum(x[m, k] * 0.5, k)\ny[m] = a[m] * 2.0",
        "powers of two are exact",
    ),
    (
        "a sum by parity",
        "total",
        "a[m] = sum(where(k % 2 == 0, x[m, k], 0.0), k)\nb[m] = sum(where(k % 2 == 1, x[m, k], 0.0), k)\n"
        "y[m] = a[m] + b[m]",
        "another order of a sum",
    ),
    (
        "a maximum by a minimum of negatives",
        "largest",
        "a[m] = min(-x[m, k], k)\ny[m] = -a[m]",
        "the same",
    ),
    (
        "a maximum of two halves",
        "largest",
        "a[m] = max(where(k % 2 == 0, x[m, k], x[m, 0]), k)\nb[m] = max(where(k % 2 == 1, x[m, k], x[m, 0]), k)\n"
        "y[m] = maximum(a[m], b[m])",
        "another order",
    ),
    ("a place by negatives", "place", "y[m] = argmin(-x[m, k], k)", "the first of equal ones too"),
    ("a place of doubles", "place", "y[m] = argmax(x[m, k] * 2.0, k)", "the same order"),
)
_WHOLE = (
    ("integers in the other order", "whole", "y[m, k] = j[m, k] + i[m, k]", "the same"),
    ("integers by a difference", "whole", "y[m, k] = i[m, k] - (0 - j[m, k])", "the same, wrapped"),
    ("integers by a complement", "whole", "y[m, k] = i[m, k] - ~j[m, k] - 1", "the same, wrapped"),
    ("masks in the other order", "masks", "y[m, k] = j[m, k] & i[m, k]", "the same"),
    ("masks by de Morgan", "masks", "y[m, k] = ~(~i[m, k] | ~j[m, k])", "the same"),
    (
        "clamped positions",
        "gather",
        "y[m, k] = t[minimum(maximum(i[m], 0), V - 1), k]",
        "positions are in bounds anyway",
    ),
    ("a value added and taken off", "gather", "y[m, k] = t[i[m] + 0, k]", "the same"),
)


def _sources() -> Iterator[Case]:
    why = "it says the same"
    tiles = "const Index count = "
    for place, rows in {
        "npu": (
            ("a comment", tiles, "// A comment with [brackets], *stars* and `new`.\n  " + tiles),
            ("a long comment", tiles, "/* static\n * int& */ " + tiles),
            ("a mask of a size", tiles, "const Index masked = K & ~31;\n  " + tiles),
            ("a negative size", tiles, "const Index negative = K * -1;\n  " + tiles),
            ("an unused number", tiles, "const double unused = 1.0e-7;\n  " + tiles),
            ("blanks", tiles, "\n\n\n   " + tiles + "  "),
            (
                "a loop that does nothing",
                tiles,
                "for (Index spare = 0; spare < 3; spare += 1) {\n  }\n  " + tiles,
            ),
            ("a reference to a constant", tiles, "const Index& same = K;\n  " + tiles),
            ("more parentheses", "{x_t.tile(), 2.0}", "{x_t.tile(), (2.0)}"),
            (
                "an addition",
                "pe.map(Op::mul, y_t.next(), {x_t.tile(), 2.0}",
                "pe.map(Op::add, y_t.next(), {x_t.tile(), x_t.tile()}",
            ),
        ),
        "cpu": (
            ("a comment", tiles, "// goto [x] *y &z\n  " + tiles),
            ("a mask of a size", tiles, "const Index masked = K & ~31;\n  " + tiles),
            ("a negative size", tiles, "const Index negative = K * -1;\n  " + tiles),
            ("an addition", "* 2.0f", "* 1.0f * 2.0f"),
        ),
        "triton": (
            (
                "a comment",
                "    y = x * 2.0\n",
                "    # exec, __import__, os.system\n    y = x * 2.0\n",
            ),
            ("an addition", "x * 2.0", "x + x"),
            ("more warps", "num_warps=1", "num_warps=4"),
            ("wider blocks", "128", "256"),
            ("an assertion", "    K = x.shape[1]\n", "    K = x.shape[1]\n    assert K > 0\n"),
        ),
        "hip": (
            ("an addition", "x[k_i] * 2.0f", "x[k_i] + x[k_i]"),
            ("a comment", "  const int m_at = tile", "  // asm, goto\n  const int m_at = tile"),
        ),
    }.items():
        for name, old, new in rows:
            edits = ((old, new),) * (5 if name == "wider blocks" else 1)
            yield Case(f"{name} in a source for {place}", why, "twice", place, edits=edits)
