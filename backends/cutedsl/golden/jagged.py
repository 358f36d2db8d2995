"""bags: Add up the rows of a table that each bag names.

Generated from spec e674e9d78fdd8a4f and schedule de07203ce70c1972.
"""

import cutlass
import cutlass.cute as cute
from cutlass import BFloat16, Boolean, Float16, Float32, Float64, Int8, Int16, Int32, Int64
from cutlass import Uint8, const_expr
from cutlass.cute.nvgpu import warpgroup

from backends.cutedsl.kernel import *

# What a build sets; these are the values at V = 10000, D = 64, L = 4096, B = 256.
D_WIDTH = 64
EVEN_D = True
ALIGNED_TABLE = True


# y[x_b, d] = sum(table[idx[l], d], l=range(offsets[x_b], offsets[x_b + 1]))
@cute.kernel
def bags_0(
    idx_ptr: cute.Pointer,
    table_ptr: cute.Pointer,
    offsets_ptr: cute.Pointer,
    y_ptr: cute.Pointer,
    D: Int32,
):
    d_n = 4 * cute.ceil_div(D_WIDTH, 64)
    d_axis = cute.make_layout(((16, 8), (4, d_n // 4)), stride=((4, 0), (1, 64)))
    l_axis = cute.make_layout(((16, 8), 4), stride=((0, 1), 8))
    part_axis = cute.make_layout((32, 4), stride=(0, 1))
    part_axis_1 = cute.make_layout((128, 4), stride=(0, 1))
    shared = cute.arch.get_dyn_smem(Uint8, 1024)
    shared_1 = 0 + cute.round_up(16 * D_WIDTH, 1024)
    part_tile_1 = cute.make_tensor(
        cute.recast_ptr(shared + 0, None, Float32),
        cute.make_layout((4, D_WIDTH), stride=(D_WIDTH, 1)),
    )
    thread = cute.arch.thread_idx()[0]
    tile = cute.arch.block_idx()[0]
    offs_d = cute.make_rmem_tensor(d_n, Int32)
    for d_i in cutlass.range(d_n, unroll_full=True):
        offs_d[d_i] = Int32(d_axis((thread, d_i)))
    mask_d = cute.make_rmem_tensor(d_n, Boolean)
    for d_i in cutlass.range(d_n, unroll_full=True):
        mask_d[d_i] = Boolean((offs_d[d_i] < D) | EVEN_D)
    x_b_at = Int32(tile)
    y = cute.make_rmem_tensor(d_n, Float32)
    for d_i in cutlass.range(d_n, unroll_full=True):
        y[d_i] = Float32(0.0)
    l_low = Int32(fn.value(get(offsets_ptr, x_b_at)))
    l_high = Int32(fn.value(get(offsets_ptr, x_b_at + 1)))
    for l_at in range(l_low, l_high, 32):
        offs_l = cute.make_rmem_tensor(4, Int32)
        for l_i in cutlass.range(4, unroll_full=True):
            offs_l[l_i] = Int32(l_at + l_axis((thread, l_i)))
        mask_l = cute.make_rmem_tensor(4, Boolean)
        for l_i in cutlass.range(4, unroll_full=True):
            mask_l[l_i] = Boolean(offs_l[l_i] < l_high)
        idx = cute.make_rmem_tensor(4, Int32)
        for l_i in cutlass.range(4, unroll_full=True):
            idx[l_i] = Int32(get(idx_ptr, offs_l[l_i], mask_l[l_i], 0))
        table = cute.make_rmem_tensor(cute.make_layout((4, d_n), stride=(d_n, 1)), Float32)
        for l_i in cutlass.range(4, unroll_full=True):
            for d_i in cutlass.range(0, d_n, wide(4, ALIGNED_TABLE), unroll_full=True):
                load(
                    vector(table, (l_i, d_i), wide(4, ALIGNED_TABLE)),
                    table_ptr,
                    idx[l_i] * D + offs_d[d_i],
                    mask_l[l_i] & mask_d[d_i],
                    0.0,
                )
        part_1 = cute.make_rmem_tensor(d_n, Float32)
        for d_i in cutlass.range(d_n, unroll_full=True):
            part_1[d_i] = Float32(0)
            for l_i in cutlass.range(4, unroll_full=True):
                part_1[d_i] = Float32(part_1[d_i] + table[l_i, d_i])
        for distance in cutlass.range_constexpr(1):
            for d_i in cutlass.range(d_n, unroll_full=True):
                part_1[d_i] = Float32(part_1[d_i] + shuffle_xor(part_1[d_i], 16 << distance))
        part_2 = cute.make_rmem_tensor(d_n, Float32)
        for d_i in cutlass.range(d_n, unroll_full=True):
            part_2[d_i] = Float32(part_1[d_i])
        cute.arch.sync_threads()
        if (thread & 16) == 0:
            for d_i in cutlass.range(d_n, unroll_full=True):
                part_tile_1[part_axis(thread), d_axis((thread, d_i))] = Float32(part_2[d_i])
        cute.arch.sync_threads()
        part_3 = cute.make_rmem_tensor(cute.make_layout((4, d_n), stride=(d_n, 1)), Float32)
        for part_i in cutlass.range(4, unroll_full=True):
            for d_i in cutlass.range(d_n, unroll_full=True):
                part_3[part_i, d_i] = Float32(
                    part_tile_1[part_axis_1((thread, part_i)), d_axis((thread, d_i))],
                )
        for d_i in cutlass.range(d_n, unroll_full=True):
            part_1[d_i] = Float32(0)
            for part_i in cutlass.range(4, unroll_full=True):
                part_1[d_i] = Float32(part_1[d_i] + part_3[part_i, d_i])
        for d_i in cutlass.range(d_n, unroll_full=True):
            y[d_i] = Float32(y[d_i] + part_1[d_i])
    if (thread & 112) == 0:
        for d_i in cutlass.range(0, d_n, wide(4, ALIGNED_TABLE), unroll_full=True):
            store(
                y_ptr,
                x_b_at * D + offs_d[d_i],
                vector(y, d_i, wide(4, ALIGNED_TABLE)),
                mask_d[d_i],
            )
