"""The kernels that are cheated with. For tests."""

from __future__ import annotations

from ir.parse.parse import parse_workload
from ir.workload import Workload


def _text(signature: str, lines: str, sizes: str) -> str:
    body = "".join(f"    {line.strip()}\n" for line in lines.strip().splitlines())
    returned = signature.partition("#")[2].strip()
    head = signature.partition("#")[0].strip()
    return f'def {head}:\n    """A kernel for tests."""\n{body}    return {returned}\n\n{sizes}'


_WIDE = "tune(M=160, K=520)\ncheck(M=7, K=33)\ncheck(M=32, K=64)\n"
_ROWS = "tune(M=96, K=264)\ncheck(M=7, K=33)\ncheck(M=32, K=64)\n"
_PRODUCT = "tune(M=96, K=160, N=96)\ncheck(M=7, K=33, N=5)\ncheck(M=32, K=64, N=32)\n"
TEXTS = {
    "twice": _text("twice(x: f32[M, K]) -> f32[M, K] # y", "y[m, k] = x[m, k] * 2.0", _WIDE),
    "softmax": _text(
        "softmax(x: f32[M, K]) -> f32[M, K] # y",
        """mx[m] = max(x[m, k], k)
        e[m, k] = exp(x[m, k] - mx[m])
        s[m] = sum(e[m, k], k)
        y[m, k] = e[m, k] / s[m]""",
        _ROWS,
    ),
    "softmax_bf16": _text(
        "softmax_bf16(x: bf16[M, K]) -> bf16[M, K] # y",
        """mx[m] = max(x[m, k], k)
        e[m, k] = exp(f32(x[m, k]) - f32(mx[m]))
        s[m] = sum(e[m, k], k)
        y[m, k] = e[m, k] / s[m]""",
        _ROWS,
    ),
    "norm": _text(
        "norm(x: f32[M, K], g: f32[K]) -> f32[M, K] # y",
        """t[m] = sum(x[m, k], k)
        c[m, k] = x[m, k] - t[m] / K
        v[m] = sum(c[m, k] ** 2, k)
        y[m, k] = c[m, k] * rsqrt(v[m] / K + 1e-5) * g[k]""",
        _ROWS,
    ),
    "rms_f16": _text(
        "rms_f16(x: f16[M, K]) -> f16[M, K] # y",
        """q[m] = sum(f32(x[m, k]) ** 2, k)
        y[m, k] = f32(x[m, k]) * rsqrt(q[m] / K + 1e-6)""",
        _ROWS,
    ),
    "matmul_bf16": _text(
        "matmul_bf16(x: bf16[M, K], w: bf16[K, N]) -> bf16[M, N] # y",
        "y[m, n] = sum(f32(x[m, k]) * f32(w[k, n]), k)",
        _PRODUCT,
    ),
    "matmul_f16": _text(
        "matmul_f16(x: f16[M, K], w: f16[K, N]) -> f16[M, N] # y",
        "y[m, n] = sum(f32(x[m, k]) * f32(w[k, n]), k)",
        _PRODUCT,
    ),
    "matmul": _text(
        "matmul(x: f32[M, K], w: f32[K, N]) -> f32[M, N] # y",
        "y[m, n] = sum(x[m, k] * w[k, n], k)",
        _PRODUCT,
    ),
    "largest": _text("largest(x: f32[M, K]) -> f32[M] # y", "y[m] = max(x[m, k], k)", _ROWS),
    "place": _text("place(x: f32[M, K]) -> i32[M] # y", "y[m] = argmax(x[m, k], k)", _ROWS),
    "total": _text("total(x: f32[M, K]) -> f32[M] # y", "y[m] = sum(x[m, k], k)", _ROWS),
    "whole": _text(
        "whole(i: i32[M, K], j: i32[M, K]) -> i32[M, K] # y", "y[m, k] = i[m, k] + j[m, k]", _ROWS
    ),
    "masks": _text(
        "masks(i: i32[M, K], j: i32[M, K]) -> i32[M, K] # y", "y[m, k] = i[m, k] & j[m, k]", _ROWS
    ),
    "gather": _text(
        "gather(t: f32[V, K], i: i32[M]) -> f32[M, K] # y",
        "y[m, k] = t[i[m], k]",
        "tune(V=400, M=160, K=64)\ncheck(V=9, M=7, K=33)\ncheck(V=50, M=32, K=64)\n",
    ),
    "scale_f16": _text(
        "scale_f16(x: f16[M, K]) -> f16[M, K] # y", "y[m, k] = f32(x[m, k]) * 3.0", _ROWS
    ),
}
WORKLOADS: dict[str, Workload] = {name: parse_workload(text) for name, text in TEXTS.items()}
