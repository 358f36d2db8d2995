"""running: The sum and the maximum of each row so far, of rows longer than a warp covers.

Generated from spec 954a4be68985be67 and schedule 4954a74d06f284a9.
"""

import cutlass
import cutlass.cute as cute
from cutlass import BFloat16, Boolean, Float16, Float32, Float64, Int8, Int16, Int32, Int64
from cutlass import Uint8, const_expr
from cutlass.cute.nvgpu import warpgroup

from backends.cutedsl.kernel import *

# What a build sets; these are the values at M = 64, K = 1024.
K_WIDTH = 1024
EVEN_K = True
ALIGNED_X = True


# y[m, k] = cumsum(x[m, k], k)
# z[m, k] = cummax(x[m, k], k)
@cute.kernel
def running_0(
    x_ptr: cute.Pointer,
    y_ptr: cute.Pointer,
    z_ptr: cute.Pointer,
    K: Int32,
):
    k_n = 4 * cute.ceil_div(K_WIDTH, 512)
    part_n = 1 * cute.ceil_div(cute.ceil_div(K_WIDTH, 512) * 4, 4)
    part_n1 = 4 * cute.ceil_div(cute.ceil_div(K_WIDTH, 512) * 4, 4)
    k_axis = cute.make_layout((128, (4, k_n // 4)), stride=(4, (1, 512)))
    part_axis = cute.make_layout(((32, 4), part_n // 1), stride=((0, 1), 4))
    part_axis_1 = cute.make_layout((128, (4, part_n1 // 4)), stride=(0, (1, 4)))
    shared = cute.arch.get_dyn_smem(Uint8, 1024)
    shared_1 = 0 + cute.round_up(max(4 * cute.ceil_div(K_WIDTH, 512) * 4, 4 * cute.ceil_div(K_WIDTH, 512) * 4), 1024)
    part_tile_4 = cute.make_tensor(
        cute.recast_ptr(shared + 0, None, Float32),
        cute.make_layout(cute.ceil_div(K_WIDTH, 512) * 4, stride=1),
    )
    part_tile_7 = cute.make_tensor(
        cute.recast_ptr(shared + 0, None, Float32),
        cute.make_layout(cute.ceil_div(K_WIDTH, 512) * 4, stride=1),
    )
    thread = cute.arch.thread_idx()[0]
    tile = cute.arch.block_idx()[0]
    offs_k = cute.make_rmem_tensor(k_n, Int32)
    for k_i in cutlass.range(k_n, unroll_full=True):
        offs_k[k_i] = Int32(k_axis((thread, k_i)))
    mask_k = cute.make_rmem_tensor(k_n, Boolean)
    for k_i in cutlass.range(k_n, unroll_full=True):
        mask_k[k_i] = Boolean((offs_k[k_i] < K) | EVEN_K)
    m_at = Int32(tile)
    x = cute.make_rmem_tensor(k_n, Float32)
    for k_i in cutlass.range(0, k_n, wide(4, ALIGNED_X), unroll_full=True):
        load(vector(x, k_i, wide(4, ALIGNED_X)), x_ptr, m_at * K + offs_k[k_i], mask_k[k_i], 0.0)
    part_2 = cute.make_rmem_tensor(k_n, Float32)
    part_3 = cute.make_rmem_tensor(part_n, Float32)
    for k_i in cutlass.range(k_n, unroll_full=True):
        part_2[k_i] = Float32(x[k_i])
    carry = Float32(0)
    for k_i in cutlass.range_constexpr(0, k_n, 4):
        carry = Float32(0)
        carry = scan(part_2, [k_i + i for i in range(4)], carry, lambda a, b: a + b, 32, 1)
        part_3[k_i // 4] = carry
    if (thread & 31) == 0:
        for part_i in cutlass.range(part_n, unroll_full=True):
            part_tile_4[part_axis((thread, part_i))] = Float32(part_3[part_i])
    cute.arch.sync_threads()
    part_4 = cute.make_rmem_tensor(part_n1, Float32)
    for part_i in cutlass.range(0, part_n1, 4, unroll_full=True):
        copy_run(vector(part_tile_4, (part_axis_1((thread, part_i))), 4), vector(part_4, part_i, 4))
    carry = Float32(0)
    for k_i in cutlass.range_constexpr(0, k_n, 4):        carry = scan_after(
            part_2,
            [k_i + i for i in range(4)],
            part_4,
            [k_i // 4 * 4 + p for p in range(4)],
            thread // 32,
            carry,
            lambda a,
            b: a + b,
        )
    y = cute.make_rmem_tensor(k_n, Float32)
    for k_i in cutlass.range(k_n, unroll_full=True):
        y[k_i] = Float32(part_2[k_i])
    for k_i in cutlass.range(0, k_n, wide(4, ALIGNED_X), unroll_full=True):
        store(y_ptr, m_at * K + offs_k[k_i], vector(y, k_i, wide(4, ALIGNED_X)), mask_k[k_i])
    part_1 = cute.make_rmem_tensor(k_n, Float32)
    for k_i in cutlass.range(k_n, unroll_full=True):
        part_1[k_i] = Float32(where(mask_k[k_i], x[k_i], -fn.INFINITY))
    part_5 = cute.make_rmem_tensor(k_n, Float32)
    part_6 = cute.make_rmem_tensor(part_n, Float32)
    for k_i in cutlass.range(k_n, unroll_full=True):
        part_5[k_i] = Float32(part_1[k_i])
    carry = fn.least_of(Float32)
    for k_i in cutlass.range_constexpr(0, k_n, 4):
        carry = fn.least_of(Float32)
        carry = scan(
            part_5,
            [k_i + i for i in range(4)],
            carry,
            lambda a,
            b: fn.maximum(a, b),
            32,
            1,
        )
        part_6[k_i // 4] = carry
    cute.arch.sync_threads()
    if (thread & 31) == 0:
        for part_i in cutlass.range(part_n, unroll_full=True):
            part_tile_7[part_axis((thread, part_i))] = Float32(part_6[part_i])
    cute.arch.sync_threads()
    part_7 = cute.make_rmem_tensor(part_n1, Float32)
    for part_i in cutlass.range(0, part_n1, 4, unroll_full=True):
        copy_run(vector(part_tile_7, (part_axis_1((thread, part_i))), 4), vector(part_7, part_i, 4))
    carry = fn.least_of(Float32)
    for k_i in cutlass.range_constexpr(0, k_n, 4):        carry = scan_after(
            part_5,
            [k_i + i for i in range(4)],
            part_7,
            [k_i // 4 * 4 + p for p in range(4)],
            thread // 32,
            carry,
            lambda a,
            b: fn.maximum(a, b),
        )
    z = cute.make_rmem_tensor(k_n, Float32)
    for k_i in cutlass.range(k_n, unroll_full=True):
        z[k_i] = Float32(part_5[k_i])
    for k_i in cutlass.range(0, k_n, wide(4, ALIGNED_X), unroll_full=True):
        store(z_ptr, m_at * K + offs_k[k_i], vector(z, k_i, wide(4, ALIGNED_X)), mask_k[k_i])
