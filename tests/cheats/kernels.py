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
    "long": _text(
        "long(x: f32[M, K]) -> f32[M, K] # y",
        "y[m, k] = x[m, k] * 2.0",
        "tune(M=4096, K=1280)\ncheck(M=7, K=33)\ncheck(M=32, K=64)\n",
    ),
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
    "running": _text(
        "running(x: f32[M, K]) -> f32[M, K] # y",
        "y[m, k] = cumsum(x[m, k], k)",
        "tune(M=96, K=520)\ncheck(M=7, K=33)\ncheck(M=32, K=64)\n",
    ),
    "gelu_f32": _text("gelu_f32(x: f32[M, K]) -> f32[M, K] # y", "y[m, k] = gelu(x[m, k])", _WIDE),
    "causal": _text(
        "causal(q: f32[M, D], k: f32[N, D], v: f32[N, D]) -> f32[M, D] # y",
        """s[m, n] = sum(q[m, d] * k[n, d], d)
        c[m, n] = where(n <= m, s[m, n], -inf)
        mx[m] = max(c[m, n], n)
        e[m, n] = exp(c[m, n] - mx[m])
        t[m] = sum(e[m, n], n)
        a[m, d] = sum(e[m, n] * v[n, d], n)
        y[m, d] = a[m, d] / t[m]""",
        "tune(M=96, N=96, D=32)\ncheck(M=7, N=7, D=5)\ncheck(M=32, N=32, D=16)\n",
    ),
    "bag": _text(
        "bag(t: f32[V, D], i: i32[L], o: i32[B + 1]) -> f32[B, D] # y",
        "y[b, d] = sum(t[i[l], d], l=range(o[b], o[b + 1]))",
        "tune(V=400, D=64, L=512, B=96)\ncheck(V=11, D=5, L=7, B=3)\ncheck(V=100, D=33, L=31, B=16)\n",
    ),
}
WORKLOADS: dict[str, Workload] = {name: parse_workload(text) for name, text in TEXTS.items()}
