"""wide: Project the softmax of rows through w, all in 64 bits.

Generated from spec 6364ff7ddce8e350 and schedule 01d14f008559095d.
"""

import cutlass
import cutlass.cute as cute
from cutlass import BFloat16, Boolean, Float16, Float32, Float64, Int8, Int16, Int32, Int64
from cutlass import Uint8, const_expr
from cutlass.cute.nvgpu import warpgroup

from backends.cutedsl.kernel import *

# What a build sets; these are the values at M = 64, K = 64, N = 64.
EVEN_M = True
EVEN_N = True
K_WIDTH = 64
EVEN_K = True
ALIGNED_X = True


# mx[m] = max(x[m, k], k)
# x_p[m, k] = exp(x[m, k] - mx[m]) * 0.1
# s[m] = sum(x_p[m, k], k)
# acc[m, n] = sum(x_p[m, k] * w[k, n], k)
# y[m, n] = sigmoid(acc[m, n] / (s[m] + eps)) ** 1.5
@cute.kernel
def wide_0(
    x_ptr: cute.Pointer,
    w_ptr: cute.Pointer,
    y_ptr: cute.Pointer,
    M: Int32,
    K: Int32,
    N: Int32,
):
    eps = 1e-10
    k_n = 2 * cute.ceil_div(K_WIDTH, 64)
    k_axis = cute.make_layout(((32, 4), (2, k_n // 2)), stride=((2, 0), (1, 64)))
    m_axis = cute.make_layout((128, 4), stride=(0, 1))
    n_axis = cute.make_layout(((32, 4), 2), stride=((0, 1), 4))
    thread = cute.arch.thread_idx()[0]
    tile = cute.arch.block_idx()[0]
    offs_k = cute.make_rmem_tensor(k_n, Int32)
    for k_i in cutlass.range(k_n, unroll_full=True):
        offs_k[k_i] = Int32(k_axis((thread, k_i)))
    mask_k = cute.make_rmem_tensor(k_n, Boolean)
    for k_i in cutlass.range(k_n, unroll_full=True):
        mask_k[k_i] = Boolean((offs_k[k_i] < K) | EVEN_K)
    tiles_n = Int32(cute.ceil_div(N, 8))
    m_at = Int32(tile // tiles_n * 4)
    n_at = Int32(tile % tiles_n * 8)
    offs_m = cute.make_rmem_tensor(4, Int32)
    for m_i in cutlass.range(4, unroll_full=True):
        offs_m[m_i] = Int32(m_at + m_axis((thread, m_i)))
    mask_m = cute.make_rmem_tensor(4, Boolean)
    for m_i in cutlass.range(4, unroll_full=True):
        mask_m[m_i] = Boolean((offs_m[m_i] < M) | EVEN_M)
    offs_n = cute.make_rmem_tensor(2, Int32)
    for n_i in cutlass.range(2, unroll_full=True):
        offs_n[n_i] = Int32(n_at + n_axis((thread, n_i)))
    mask_n = cute.make_rmem_tensor(2, Boolean)
    for n_i in cutlass.range(2, unroll_full=True):
        mask_n[n_i] = Boolean((offs_n[n_i] < N) | EVEN_N)
    x = cute.make_rmem_tensor(cute.make_layout((4, k_n), stride=(k_n, 1)), Float64)
    for m_i in cutlass.range(4, unroll_full=True):
        for k_i in cutlass.range(0, k_n, wide(2, ALIGNED_X), unroll_full=True):
            load(
                vector(x, (m_i, k_i), wide(2, ALIGNED_X)),
                x_ptr,
                offs_m[m_i] * K + offs_k[k_i],
                mask_m[m_i] & mask_k[k_i],
                0.0,
            )
    mx = cute.make_rmem_tensor(4, Float64)
    for m_i in cutlass.range(4, unroll_full=True):
        mx[m_i] = fn.least_of(Float64)
        for k_i in cutlass.range(k_n, unroll_full=True):
            mx[m_i] = Float64(
                fn.larger(mx[m_i], where(mask_k[k_i], x[m_i, k_i], Float64(-fn.INFINITY))),
            )
    for distance in cutlass.range_constexpr(5):
        for m_i in cutlass.range(4, unroll_full=True):
            mx[m_i] = Float64(fn.larger(mx[m_i], shuffle_xor(mx[m_i], 1 << distance)))
    x_p = cute.make_rmem_tensor(cute.make_layout((4, k_n), stride=(k_n, 1)), Float64)
    for m_i in cutlass.range(4, unroll_full=True):
        for k_i in cutlass.range(k_n, unroll_full=True):
            x_p[m_i, k_i] = Float64(fn.exp(x[m_i, k_i] - mx[m_i]) * Float64(0.1))
    w = cute.make_rmem_tensor(cute.make_layout((k_n, 2), stride=(2, 1)), Float64)
    for k_i in cutlass.range(k_n, unroll_full=True):
        for n_i in cutlass.range(2, unroll_full=True):
            w[k_i, n_i] = Float64(
                get(w_ptr, offs_k[k_i] * N + offs_n[n_i], mask_k[k_i] & mask_n[n_i], 0.0),
            )
    acc_term = cute.make_rmem_tensor(
        cute.make_layout((4, 2, k_n), stride=(2 * k_n, k_n, 1)),
        Float64,
    )
    for m_i in cutlass.range(4, unroll_full=True):
        for n_i in cutlass.range(2, unroll_full=True):
            for k_i in cutlass.range(k_n, unroll_full=True):
                acc_term[m_i, n_i, k_i] = Float64(x_p[m_i, k_i] * w[k_i, n_i])
    acc = cute.make_rmem_tensor(cute.make_layout((4, 2), stride=(2, 1)), Float64)
    for m_i in cutlass.range(4, unroll_full=True):
        for n_i in cutlass.range(2, unroll_full=True):
            acc[m_i, n_i] = Float64(0)
            for k_i in cutlass.range(k_n, unroll_full=True):
                acc[m_i, n_i] = Float64(
                    acc[m_i, n_i] + where(mask_k[k_i], acc_term[m_i, n_i, k_i], Float64(0.0)),
                )
    for distance in cutlass.range_constexpr(5):
        for m_i in cutlass.range(4, unroll_full=True):
            for n_i in cutlass.range(2, unroll_full=True):
                acc[m_i, n_i] = Float64(acc[m_i, n_i] + shuffle_xor(acc[m_i, n_i], 1 << distance))
    s = cute.make_rmem_tensor(4, Float64)
    for m_i in cutlass.range(4, unroll_full=True):
        s[m_i] = Float64(0)
        for k_i in cutlass.range(k_n, unroll_full=True):
            s[m_i] = Float64(s[m_i] + where(mask_k[k_i], x_p[m_i, k_i], Float64(0.0)))
    for distance in cutlass.range_constexpr(5):
        for m_i in cutlass.range(4, unroll_full=True):
            s[m_i] = Float64(s[m_i] + shuffle_xor(s[m_i], 1 << distance))
    y = cute.make_rmem_tensor(cute.make_layout((4, 2), stride=(2, 1)), Float64)
    for m_i in cutlass.range(4, unroll_full=True):
        for n_i in cutlass.range(2, unroll_full=True):
            y[m_i, n_i] = Float64(
                fn.pow(fn.sigmoid(fn.divide(acc[m_i, n_i], s[m_i] + eps)), Float64(1.5)),
            )
    if (thread & 31) == 0:
        for m_i in cutlass.range(4, unroll_full=True):
            for n_i in cutlass.range(2, unroll_full=True):
                put(y_ptr, offs_m[m_i] * N + offs_n[n_i], y[m_i, n_i], mask_m[m_i] & mask_n[n_i])
