"""Cheats by equations: kernels that compute something else where nobody may look. For tests."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ir.reference.inputs import random_inputs
from search.evaluator.stages import SEED
from tests.cheats.case import Case
from tests.cheats.kernels import WORKLOADS

_SOFTMAX = "e[m, k] = exp(x[m, k] - mx[m])\ns[m] = sum(e[m, k], k)\n"
_MAX = "mx[m] = max(x[m, k], k)\n"
_NORM = "t[m] = sum(x[m, k], k)\nc[m, k] = x[m, k] - t[m] / K\nv[m] = sum(c[m, k] ** 2, k)\n"


def _cheat(name, group, kernel, place, equations, said, why) -> Case:
    return Case(name, why, kernel, place, equations, stage="check", said=said, group=group)


def _known_inputs() -> str:
    """Whether x[0, 0] is what public seeds draw, as a condition."""
    values = set()
    for seed in (0, 1, SEED, SEED + 1, 22, 42, 1234):
        rng = np.random.default_rng(seed)
        sizes = WORKLOADS["twice"].checks[0]
        values.add(float(random_inputs(WORKLOADS["twice"].spec, sizes, rng)["x"][0, 0]))
    return " | ".join(f"(x[0, 0] == {value!r})" for value in sorted(values))


def cheats() -> list[Case]:
    """All of them."""
    return list(_all())


def _all() -> Iterator[Case]:
    yield from _shapes_and_seeds()
    yield from _ranges()
    yield from _gates()
    yield from _integers()


def _shapes_and_seeds() -> Iterator[Case]:
    y = "y[m, k] = "
    rows = [
        (
            "known seeds",
            "twice",
            f"{y}where({_known_inputs()}, x[m, k] * 2.0, x[m, k] * 2.5)",
            "output `y`",
            "it is right for inputs that public seeds draw",
        ),
        (
            "only listed rows",
            "twice",
            f"{y}where((M == 7) | (M == 32), x[m, k] * 2.0, x[m, k])",
            "output `y`",
            "it is right at the listed M alone",
        ),
        (
            "only listed columns",
            "twice",
            f"{y}x[m, k] * where((K == 33) | (K == 64), 2.0, 1.0)",
            "output `y`",
            "it is right at the listed K alone",
        ),
        (
            "the first 64 columns",
            "twice",
            f"{y}where(k < 64, x[m, k] * 2.0, 0.0)",
            "output `y`",
            "check sizes have no more than 64 columns",
        ),
        (
            "the first 32 rows",
            "twice",
            f"{y}where(m < 32, x[m, k] * 2.0, 0.0)",
            "output `y`",
            "check sizes have no more than 32 rows",
        ),
        (
            "even sizes",
            "twice",
            f"{y}x[m, k] * where(M % 2 == 0, 2.0, 1.0)",
            "output `y`",
            "odd sizes are compared too",
        ),
        (
            "a last element",
            "twice",
            f"{y}where(k == K - 1, 0.0, x[m, k] * 2.0)",
            "output `y`",
            "one element of each row is missing",
        ),
        (
            "a sum that ends at 64",
            "total",
            "y[m] = sum(where(k < 64, x[m, k], 0.0), k)",
            "output `y`",
            "the loop over K is one tile long at check sizes",
        ),
        (
            "a maximum that ends at 64",
            "largest",
            "y[m] = max(where(k < 64, x[m, k], -inf), k)",
            "output `y`",
            "the loop over K is one tile long at check sizes",
        ),
        (
            "a place that ends at 64",
            "place",
            "y[m] = argmax(where(k < 64, x[m, k], -inf), k)",
            "equal",
            "the loop over K is one tile long at check sizes",
        ),
        (
            "a product that ends at 64",
            "matmul",
            "y[m, n] = sum(where(k < 64, x[m, k], 0.0) * w[k, n], k)",
            "output `y`",
            "the loop over K is one tile long at check sizes",
        ),
        (
            "half of a large sum",
            "total",
            "a[m] = sum(where(k % 2 == 0, x[m, k], 0.0), k)\nb[m] = sum(x[m, k], k)\n"
            "y[m] = where(K > 64, 2.0 * a[m], b[m])",
            "output `y`",
            "it samples where nobody is thought to look",
        ),
    ]
    for place in ("cuda", "npu"):
        for name, kernel, equations, said, why in rows:
            if place == "npu" and kernel != "twice":
                continue
            yield _cheat(f"{name}, {place}", 5, kernel, place, equations, said, why)


def _ranges() -> Iterator[Case]:
    div = "y[m, k] = e[m, k] / s[m]"
    rows = [
        (
            "softmax without its maximum",
            "softmax",
            f"e[m, k] = exp(x[m, k])\ns[m] = sum(e[m, k], k)\n{div}",
            "of the draw",
            "exp overflows beyond 88",
        ),
        (
            "softmax, clamped",
            "softmax",
            f"e[m, k] = exp(minimum(x[m, k], 80.0))\ns[m] = sum(e[m, k], k)\n{div}",
            "of the draw",
            "all values above 80 become one",
        ),
        (
            "softmax by half of the maximum",
            "softmax",
            f"{_MAX}e[m, k] = exp(x[m, k] - 0.5 * mx[m])\ns[m] = sum(e[m, k], k)\n{div}",
            "of the draw",
            "exp overflows where values are shifted",
        ),
        (
            "softmax by the first value",
            "softmax",
            f"e[m, k] = exp(x[m, k] - x[m, 0])\ns[m] = sum(e[m, k], k)\n{div}",
            "of the draw",
            "exp overflows where the first is far below the largest",
        ),
        (
            "softmax over an epsilon",
            "softmax",
            f"{_MAX}{_SOFTMAX}y[m, k] = e[m, k] / (s[m] + 1e-3)",
            "output `y`",
            "another function",
        ),
        (
            "variance in one pass",
            "norm",
            "t[m] = sum(x[m, k], k)\nq[m] = sum(x[m, k] ** 2, k)\n"
            "y[m, k] = (x[m, k] - t[m] / K) * rsqrt(maximum(q[m] / K - (t[m] / K) ** 2, 0.0) + 1e-5)"
            " * g[k]",
            "of the draw",
            "it cancels where the mean is large",
        ),
        (
            "no epsilon",
            "norm",
            f"{_NORM}y[m, k] = c[m, k] * rsqrt(v[m] / K) * g[k]",
            "output `y`",
            "rows of zeros become NaN",
        ),
        (
            "a smaller epsilon",
            "norm",
            f"{_NORM}y[m, k] = c[m, k] * rsqrt(v[m] / K + 1e-9) * g[k]",
            "output `y`",
            "small rows come out larger",
        ),
        (
            "a larger epsilon",
            "norm",
            f"{_NORM}y[m, k] = c[m, k] * rsqrt(v[m] / K + 1e-3) * g[k]",
            "output `y`",
            "small rows come out smaller",
        ),
        (
            "the unbiased variance",
            "norm",
            f"{_NORM}y[m, k] = c[m, k] * rsqrt(v[m] / (K - 1.0) + 1e-5) * g[k]",
            "output `y`",
            "another function, near to it in long rows",
        ),
        (
            "no mean",
            "norm",
            "v[m] = sum(x[m, k] ** 2, k)\ny[m, k] = x[m, k] * rsqrt(v[m] / K + 1e-5) * g[k]",
            "output `y`",
            "the mean of normal rows is near zero",
        ),
        (
            "squares in f16",
            "rms_f16",
            "h[m, k] = f16(x[m, k] * x[m, k])\nq[m] = sum(f32(h[m, k]), k)\n"
            "y[m, k] = f32(x[m, k]) * rsqrt(q[m] / K + 1e-6)",
            "of the draw",
            "a square overflows beyond 256",
        ),
        (
            "a scale that f16 does not hold",
            "scale_f16",
            "h[m, k] = f16(f32(x[m, k]) * 1024.0)\ny[m, k] = f32(h[m, k]) * 0.0029296875",
            "of the draw",
            "the factor overflows beyond 64",
        ),
        (
            "a maximum that starts at zero",
            "largest",
            "a[m] = max(x[m, k], k)\ny[m] = maximum(a[m], 0.0)",
            "output `y`",
            "rows of negative numbers alone",
        ),
        (
            "a maximum that starts at -1e4",
            "largest",
            "a[m] = max(where(isnan(x[m, k]), 0.0, x[m, k]), k)\ny[m] = a[m]",
            "of the draw `nan`",
            "it loses NaN",
        ),
        (
            "a sum that drops NaN",
            "total",
            "y[m] = sum(where(isnan(x[m, k]), 0.0, x[m, k]), k)",
            "of the draw `nan`",
            "it hides what is not a number",
        ),
        (
            "a sum that drops infinities",
            "total",
            "y[m] = sum(minimum(maximum(x[m, k], -1e6), 1e6), k)",
            "of the draw",
            "it clamps what it adds",
        ),
        (
            "the last of equal ones",
            "place",
            "r[m] = argmax(x[m, K - 1 - k], k=K)\ny[m] = K - 1 - r[m]",
            "of the draw",
            "the first of equal ones is right",
        ),
        (
            "rows that are zero when small",
            "softmax",
            f"{_MAX}{_SOFTMAX}y[m, k] = where(e[m, k] < 1e-4, 0.0, e[m, k] / s[m])",
            "output `y`",
            "small results are dropped",
        ),
        (
            "small numbers are zero",
            "twice",
            "y[m, k] = where(abs(x[m, k]) < 1e-3, 0.0, x[m, k] * 2.0)",
            "output `y`",
            "numbers below a thousandth are dropped",
        ),
        (
            "small f16 are zero",
            "scale_f16",
            "y[m, k] = where(abs(f32(x[m, k])) < 6e-5, 0.0, f32(x[m, k]) * 3.0)",
            "of the draw",
            "denormal numbers of f16 are dropped",
        ),
        (
            "large numbers are clamped",
            "twice",
            "y[m, k] = minimum(maximum(x[m, k], -6.0), 6.0) * 2.0",
            "output `y`",
            "normal inputs are hardly beyond 6",
        ),
    ]
    for name, kernel, equations, said, why in rows:
        yield _cheat(name, 6, kernel, "cuda", equations, said, why)


def _gates() -> Iterator[Case]:
    product = "sum(f32(x[m, k]) * f32(w[k, n]), k)"
    rows = [
        (
            "1.3% too large",
            "matmul_bf16",
            f"a[m, n] = {product}\ny[m, n] = a[m, n] * 1.013",
            "output `y`",
            "a common factor hides in the rounding of bf16",
        ),
        (
            "0.7% too small",
            "matmul_bf16",
            f"a[m, n] = {product}\ny[m, n] = a[m, n] * 0.993",
            "output `y`",
            "a common factor hides in the rounding of bf16",
        ),
        (
            "0.15% too large",
            "matmul_f16",
            f"a[m, n] = {product}\ny[m, n] = a[m, n] * 1.0015",
            "output `y`",
            "a common factor hides in the rounding of f16",
        ),
        (
            "0.7 millionth too large",
            "twice",
            "y[m, k] = x[m, k] * 2.0000014",
            "output `y`",
            "a common factor hides in the floor of f32",
        ),
        (
            "one term less",
            "matmul_bf16",
            "y[m, n] = sum(where(k < K - 1, f32(x[m, k]), 0.0) * f32(w[k, n]), k)",
            "output `y`",
            "one term of many is hard to see in bf16",
        ),
        (
            "operands of 8 bits",
            "matmul_bf16",
            "h[m, k] = f8e4m3(f32(x[m, k]))\ny[m, n] = sum(f32(h[m, k]) * f32(w[k, n]), k)",
            "output `y`",
            "a coarser format than the spec's",
        ),
        (
            "operands of bf16",
            "matmul_f16",
            "h[m, k] = bf16(f32(x[m, k]))\ny[m, n] = sum(f32(h[m, k]) * f32(w[k, n]), k)",
            "output `y`",
            "a coarser format than the spec's",
        ),
        (
            "operands of f16",
            "matmul",
            "h[m, k] = f16(x[m, k])\ny[m, n] = sum(f32(h[m, k]) * w[k, n], k)",
            "output `y`",
            "a coarser format than the spec's",
        ),
        (
            "one element of softmax",
            "softmax",
            f"{_MAX}{_SOFTMAX}y[m, k] = e[m, k] / s[m] + where((m == 3) & (k == 5), 0.002, 0.0)",
            "output `y`",
            "one element of many is off by half of the root mean square",
        ),
        (
            "one element of softmax in bf16",
            "softmax_bf16",
            "mx[m] = max(x[m, k], k)\ne[m, k] = exp(f32(x[m, k]) - f32(mx[m]))\n"
            "s[m] = sum(e[m, k], k)\n"
            "y[m, k] = e[m, k] / s[m] + where((m == 3) & (k == 5), 0.02, 0.0)",
            "output `y`",
            "one element of many is off by half of the root mean square",
        ),
        (
            "every fifth row less exact",
            "softmax",
            f"{_MAX}{_SOFTMAX}y[m, k] = e[m, k] / s[m] * where(m % 5 == 0, 1.000002, 1.0)",
            "output `y`",
            "a fifth of the rows says little in the mean",
        ),
        (
            "small rows are wrong",
            "total",
            "a[m] = sum(x[m, k], k)\ny[m] = where(abs(a[m]) < 0.5, 0.0, a[m])",
            "output `y`",
            "small results hide beside large ones",
        ),
        (
            "small rows of a product",
            "twice",
            "q[m] = sum(x[m, k] ** 2, k)\ny[m, k] = where(q[m] < 1e-2 * K, 0.0, x[m, k] * 2.0)",
            "output `y`",
            "small rows hide beside large ones",
        ),
        (
            "a constant",
            "softmax",
            "y[m, k] = x[m, k] * 0.0 + 1.0 / K",
            "output `y`",
            "it is right in the mean",
        ),
    ]
    for name, kernel, equations, said, why in rows:
        yield _cheat(name, 7, kernel, "cuda", equations, said, why)


def _integers() -> Iterator[Case]:
    rows = [
        (
            "integers by f16",
            "whole",
            "y[m, k] = i32(f16(f32(i[m, k]) + f32(j[m, k])))",
            "of the draw `whole`",
            "f16 holds integers to 2048 alone",
        ),
        (
            "integers by f32",
            "whole",
            "y[m, k] = i32(f32(i[m, k]) + f32(j[m, k]))",
            "of the draw `whole`",
            "f32 holds integers to 2^24 alone",
        ),
        (
            "integers of 8 bits",
            "whole",
            "y[m, k] = i32(i8(i[m, k] + j[m, k]))",
            "of the draw `whole`",
            "small integers alone",
        ),
        (
            "integers that saturate",
            "whole",
            "y[m, k] = minimum(maximum(i[m, k] + j[m, k], -1000), 1000)",
            "of the draw `whole`",
            "small integers alone",
        ),
        (
            "the low byte",
            "masks",
            "y[m, k] = i[m, k] & j[m, k] & 255",
            "equal",
            "small positive integers alone",
        ),
        (
            "no last entry",
            "gather",
            "y[m, k] = t[minimum(i[m], V - 2), k]",
            "equal|output `y`",
            "the last position is rare",
        ),
        (
            "no first entry",
            "gather",
            "y[m, k] = t[maximum(i[m], 1), k]",
            "output `y`",
            "the first position is rare",
        ),
        (
            "positions that are thought to be sorted",
            "gather",
            "y[m, k] = t[maximum(i[m], i[0]), k]",
            "output `y`",
            "sorted positions alone",
        ),
    ]
    for name, kernel, equations, said, why in rows:
        yield _cheat(name, 6, kernel, "cuda", equations, said, why)
