"""row_softmax: Turn each row into probabilities.

Generated from spec e20d5cc05d156fc8 and schedule 2500a094d29dc788.
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
ALIGNED_X = True


# mx[m] = max(x[m, k], k)
# e[m, k] = exp(x[m, k] - mx[m])
# s[m] = sum(e[m, k], k)
# y[m, k] = e[m, k] / s[m]
@cute.kernel
def row_softmax_0(
    x_ptr: cute.Pointer,
    y_ptr: cute.Pointer,
    M: Int32,
    K: Int32,
):
    k_n = 4 * cute.ceil_div(K_WIDTH, 128)
    k_axis = cute.make_layout(((32, 4), (4, k_n // 4)), stride=((4, 0), (1, 128)))
    m_axis = cute.make_layout((32, 4), stride=(0, 1))
    thread = cute.arch.thread_idx()[0]
    tile = cute.arch.block_idx()[0]
    offs_k = cute.make_rmem_tensor(k_n, Int32)
    for k_i in cutlass.range(k_n, unroll_full=True):
        offs_k[k_i] = Int32(k_axis((thread, k_i)))
    mask_k = cute.make_rmem_tensor(k_n, Boolean)
    for k_i in cutlass.range(k_n, unroll_full=True):
        mask_k[k_i] = Boolean((offs_k[k_i] < K) | EVEN_K)
    m_at = Int32(tile * 4)
    offs_m = Int32(m_at + m_axis(thread))
    mask_m = Boolean((offs_m < M) | EVEN_M)
    x = cute.make_rmem_tensor(k_n, Float32)
    for k_i in cutlass.range(0, k_n, wide(4, ALIGNED_X), unroll_full=True):
        load(
            vector(x, k_i, wide(4, ALIGNED_X)),
            x_ptr,
            offs_m * K + offs_k[k_i],
            mask_m & mask_k[k_i],
            0.0,
        )
    mx = Float32(0)
    mx = fn.least_of(Float32)
    for k_i in cutlass.range(k_n, unroll_full=True):
        mx = Float32(fn.larger(mx, where(mask_k[k_i], x[k_i], -fn.INFINITY)))
    for distance in cutlass.range_constexpr(5):
        mx = Float32(fn.larger(mx, shuffle_xor(mx, 1 << distance)))
    e = cute.make_rmem_tensor(k_n, Float32)
    for k_i in cutlass.range(k_n, unroll_full=True):
        e[k_i] = Float32(fn.exp2_flushed(x[k_i] * fn.LOG2_E - mx * fn.LOG2_E))
    s = Float32(0)
    s = Float32(0)
    for k_i in cutlass.range(k_n, unroll_full=True):
        s = Float32(s + where(mask_k[k_i], e[k_i], 0.0))
    for distance in cutlass.range_constexpr(5):
        s = Float32(s + shuffle_xor(s, 1 << distance))
    y = cute.make_rmem_tensor(k_n, Float32)
    for k_i in cutlass.range(k_n, unroll_full=True):
        y[k_i] = Float32(fn.divide(e[k_i], s))
    for k_i in cutlass.range(0, k_n, wide(4, ALIGNED_X), unroll_full=True):
        store(
            y_ptr,
            offs_m * K + offs_k[k_i],
            vector(y, k_i, wide(4, ALIGNED_X)),
            mask_m & mask_k[k_i],
        )
