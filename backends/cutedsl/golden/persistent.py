"""row_norm: Bring each row to mean 0 and variance 1, then scale and shift it.

Generated from spec a97ddebcfa1ea5a3 and schedule 78f84a1a3a4b2bf7.
"""

import cutlass
import cutlass.cute as cute
from cutlass import BFloat16, Boolean, Float16, Float32, Float64, Int8, Int16, Int32, Int64
from cutlass import Uint8, const_expr
from cutlass.cute.nvgpu import warpgroup

from backends.cutedsl.kernel import *

# What a build sets; these are the values at M = 1024, K = 1024.
EVEN_M = True
K_WIDTH = 1024
EVEN_K = True
ALIGNED_G = True


# s[m] = sum(x[m, k], k)
# mean[m] = s[m] / K
# ss[m] = sum((x[m, k] - mean[m]) ** 2, k)
# r[m] = rsqrt(ss[m] / K + eps)
# y[m, k] = (x[m, k] - mean[m]) * r[m] * g[k] + x_b[k]
@cute.kernel
def row_norm_0(
    x_ptr: cute.Pointer,
    g_ptr: cute.Pointer,
    x_b_ptr: cute.Pointer,
    y_ptr: cute.Pointer,
    M: Int32,
    K: Int32,
):
    eps = 1e-05
    k_n = 4 * cute.ceil_div(K_WIDTH, 128)
    k_axis = cute.make_layout(((32, 4), (4, k_n // 4)), stride=((4, 0), (1, 128)))
    m_axis = cute.make_layout((32, 4), stride=(0, 1))
    thread = cute.arch.thread_idx()[0]
    offs_k = cute.make_rmem_tensor(k_n, Int32)
    for k_i in cutlass.range(k_n, unroll_full=True):
        offs_k[k_i] = Int32(k_axis((thread, k_i)))
    mask_k = cute.make_rmem_tensor(k_n, Boolean)
    for k_i in cutlass.range(k_n, unroll_full=True):
        mask_k[k_i] = Boolean((offs_k[k_i] < K) | EVEN_K)
    g = cute.make_rmem_tensor(k_n, Float32)
    for k_i in cutlass.range(0, k_n, wide(4, ALIGNED_G), unroll_full=True):
        load(vector(g, k_i, wide(4, ALIGNED_G)), g_ptr, offs_k[k_i], mask_k[k_i], 0.0)
    x_b = cute.make_rmem_tensor(k_n, Float32)
    for k_i in cutlass.range(0, k_n, wide(4, ALIGNED_G), unroll_full=True):
        load(vector(x_b, k_i, wide(4, ALIGNED_G)), x_b_ptr, offs_k[k_i], mask_k[k_i], 0.0)
    for tile in range(cute.arch.block_idx()[0], cute.ceil_div(M, 4), cute.arch.grid_dim()[0]):
        m_at = Int32(tile * 4)
        offs_m = Int32(m_at + m_axis(thread))
        mask_m = Boolean((offs_m < M) | EVEN_M)
        x = cute.make_rmem_tensor(k_n, Float32)
        for k_i in cutlass.range(0, k_n, wide(4, ALIGNED_G), unroll_full=True):
            load(
                vector(x, k_i, wide(4, ALIGNED_G)),
                x_ptr,
                offs_m * K + offs_k[k_i],
                mask_m & mask_k[k_i],
                0.0,
            )
        s = Float32(0)
        s = Float32(0)
        for k_i in cutlass.range(k_n, unroll_full=True):
            s = Float32(s + x[k_i])
        for distance in cutlass.range_constexpr(5):
            s = Float32(s + shuffle_xor(s, 1 << distance))
        mean = Float32(fn.divide(s, K))
        ss_term = cute.make_rmem_tensor(k_n, Float32)
        for k_i in cutlass.range(k_n, unroll_full=True):
            ss_term[k_i] = Float32(fn.square(x[k_i] - mean))
        ss = Float32(0)
        ss = Float32(0)
        for k_i in cutlass.range(k_n, unroll_full=True):
            ss = Float32(ss + where(mask_k[k_i], ss_term[k_i], 0.0))
        for distance in cutlass.range_constexpr(5):
            ss = Float32(ss + shuffle_xor(ss, 1 << distance))
        r = Float32(fn.rsqrt(fn.divide(ss, K) + eps))
        y = cute.make_rmem_tensor(k_n, Float32)
        for k_i in cutlass.range(k_n, unroll_full=True):
            y[k_i] = Float32((((x[k_i] - mean) * r) * g[k_i]) + x_b[k_i])
        for k_i in cutlass.range(0, k_n, wide(4, ALIGNED_G), unroll_full=True):
            store(
                y_ptr,
                offs_m * K + offs_k[k_i],
                vector(y, k_i, wide(4, ALIGNED_G)),
                mask_m & mask_k[k_i],
            )
