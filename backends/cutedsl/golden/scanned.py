"""row_scan: Add up each row from its start to every place.

Generated from spec 891a23a5d334a4d1 and schedule 4ff1a15f9e8b8531.
"""

import cutlass
import cutlass.cute as cute
from cutlass import BFloat16, Boolean, Float16, Float32, Float64, Int8, Int16, Int32, Int64
from cutlass import Uint8, const_expr
from cutlass.cute.nvgpu import warpgroup

from backends.cutedsl.kernel import *

# What a build sets; these are the values at M = 512, K = 2048.
EVEN_M = True
K_WIDTH = 2048
EVEN_K = True
ALIGNED_X = True


# y[m, k] = cumsum(x[m, k], k)
@cute.kernel
def row_scan_0(
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
    offs_m_1 = Int32(m_at + m_axis(thread))
    mask_m_1 = Boolean((offs_m_1 < M) | EVEN_M)
    x = cute.make_rmem_tensor(k_n, Float32)
    for k_i in cutlass.range(0, k_n, wide(4, ALIGNED_X), unroll_full=True):
        load(
            vector(x, k_i, wide(4, ALIGNED_X)),
            x_ptr,
            offs_m_1 * K + offs_k[k_i],
            mask_m_1 & mask_k[k_i],
            0.0,
        )
    part_1 = cute.make_rmem_tensor(k_n, Float32)
    for k_i in cutlass.range(k_n, unroll_full=True):
        part_1[k_i] = Float32(x[k_i])
    carry = Float32(0)
    for k_i in cutlass.range_constexpr(0, k_n, 4):
        carry = scan(part_1, [k_i + i for i in range(4)], carry, lambda a, b: a + b, 32, 1)
    y = cute.make_rmem_tensor(k_n, Float32)
    for k_i in cutlass.range(k_n, unroll_full=True):
        y[k_i] = Float32(part_1[k_i])
    for k_i in cutlass.range(0, k_n, wide(4, ALIGNED_X), unroll_full=True):
        store(
            y_ptr,
            offs_m_1 * K + offs_k[k_i],
            vector(y, k_i, wide(4, ALIGNED_X)),
            mask_m_1 & mask_k[k_i],
        )
