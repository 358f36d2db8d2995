"""tapped: Convolve images whose channels come first, and add a bias.

Generated from spec 3e583a0fa5af5c5a and schedule 150911e2068a288a.
"""

import cutlass
import cutlass.cute as cute
from cutlass import BFloat16, Boolean, Float16, Float32, Float64, Int8, Int16, Int32, Int64
from cutlass import Uint8, const_expr
from cutlass.cute.nvgpu import warpgroup

from backends.cutedsl.kernel import *

# What a build sets; these are the values at B = 64, C = 32, H = 28, W = 28, O = 32.
EVEN_X_P = True
EVEN_Q = False
O_WIDTH = 32
EVEN_O = True
C_WIDTH = 32
EVEN_C = True
ALIGNED_W = True
ALIGNED_W_1 = True
ALIGNED_BIAS = True
ALIGNED_Y = True


# acc[x_b, x_p, q, o] = sum(f32(pad(x[x_b, c, x_p - 1, q - 1], 0.0)) * f32(w[0, 0, o, c]) +
#     f32(pad(x[x_b, c, x_p, q - 1], 0.0)) * f32(w[1, 0, o, c]) + f32(pad(x[x_b, c, x_p + 1, q -
#     1], 0.0)) * f32(w[2, 0, o, c]) + (f32(pad(x[x_b, c, x_p - 1, q], 0.0)) * f32(w[0, 1, o, c])
#     + f32(pad(x[x_b, c, x_p, q], 0.0)) * f32(w[1, 1, o, c]) + f32(pad(x[x_b, c, x_p + 1, q],
#     0.0)) * f32(w[2, 1, o, c])) + (f32(pad(x[x_b, c, x_p - 1, q + 1], 0.0)) * f32(w[0, 2, o, c])
#     + f32(pad(x[x_b, c, x_p, q + 1], 0.0)) * f32(w[1, 2, o, c]) + f32(pad(x[x_b, c, x_p + 1, q +
#     1], 0.0)) * f32(w[2, 2, o, c])), c)
# y[x_b, o, x_p, q] = f16(acc[x_b, x_p, q, o] + bias[o])
@cute.kernel
def tapped_0(
    x_ptr: cute.Pointer,
    w_ptr: cute.Pointer,
    bias_ptr: cute.Pointer,
    y_ptr: cute.Pointer,
    C: Int32,
    H: Int32,
    W: Int32,
    O: Int32,
):
    o_n = 8 * cute.ceil_div(O_WIDTH, 32)
    o_n1 = 1 * cute.ceil_div(O_WIDTH, 32)
    c_n = 8 * cute.ceil_div(C_WIDTH, 32)
    c_n1 = 4 * cute.ceil_div(C_WIDTH, 16)
    o_n2 = 1 * cute.ceil_div(O_WIDTH, 16)
    o_axis = cute.make_layout(((4, 32), (2, 4, o_n // 8)), stride=((2, 0), (1, 8, 32)))
    o_axis_1 = cute.make_layout(((4, 32), o_n1 // 1), stride=((0, 1), 32))
    c_axis = cute.make_layout(((4, 32), (8, c_n // 8)), stride=((8, 0), (1, 32)))
    x_p_axis = cute.make_layout(((8, 2, 8), 3), stride=((0, 1, 0), 2))
    q_axis = cute.make_layout((2, 64), stride=(1, 0))
    c_axis_1 = cute.make_layout(((2, 4, 16), (8, c_n // 8)), stride=((0, 8, 0), (1, 32)))
    x_p_axis_1 = cute.make_layout((128, 6), stride=(0, 1))
    q_axis_1 = cute.make_layout((32, 4), stride=(1, 0))
    c_axis_2 = cute.make_layout(((32, 4), (8, c_n // 8)), stride=((0, 8), (1, 32)))
    x_p_axis_2 = cute.make_layout(((64, 2), 2), stride=((0, 1), 2))
    q_axis_2 = cute.make_layout(((4, 8, 2, 2), 2), stride=((0, 1, 16, 0), 8))
    x_p_axis_3 = cute.make_layout((128, 4), stride=(0, 1))
    o_axis_2 = cute.make_layout(((8, 16), o_n2 // 1), stride=((0, 1), 16))
    q_axis_3 = cute.make_layout(((8, 16), 4), stride=((4, 0), 1))
    shared = cute.arch.get_dyn_smem(Uint8, 1024)
    shared_1 = 0 + cute.round_up(2 * O_WIDTH * C_WIDTH, 1024)
    shared_2 = shared_1 + cute.round_up(2 * O_WIDTH * C_WIDTH, 1024)
    shared_3 = shared_2 + cute.round_up(2 * O_WIDTH * C_WIDTH, 1024)
    shared_4 = shared_3 + cute.round_up(2 * O_WIDTH * C_WIDTH, 1024)
    shared_5 = shared_4 + cute.round_up(2 * O_WIDTH * C_WIDTH, 1024)
    shared_6 = shared_5 + cute.round_up(2 * O_WIDTH * C_WIDTH, 1024)
    shared_7 = shared_6 + cute.round_up(2 * O_WIDTH * C_WIDTH, 1024)
    shared_8 = shared_7 + cute.round_up(2 * O_WIDTH * C_WIDTH, 1024)
    shared_9 = shared_8 + cute.round_up(2 * O_WIDTH * C_WIDTH, 1024)
    shared_10 = shared_9 + cute.round_up(max(408 * C_WIDTH, max(408 * C_WIDTH, max(408 * C_WIDTH, max(408 * C_WIDTH, max(408 * C_WIDTH, max(408 * C_WIDTH, max(408 * C_WIDTH, max(408 * C_WIDTH, max(408 * C_WIDTH, max(408 * C_WIDTH, max(408 * C_WIDTH, max(408 * C_WIDTH, max(408 * C_WIDTH, max(408 * C_WIDTH, max(408 * C_WIDTH, max(408 * C_WIDTH, max(408 * C_WIDTH, max(408 * C_WIDTH, max(408 * C_WIDTH, 320 * O_WIDTH))))))))))))))))))), 1024)
    w_tile = cute.make_tensor(
        cute.recast_ptr(shared + 0, cute.make_swizzle(2, 4, 3), Float16),
        cute.make_layout((O_WIDTH, (32, cute.ceil_div(C_WIDTH, 32))), stride=(32, (1, O_WIDTH * 32))),
    )
    w_2_tile = cute.make_tensor(
        cute.recast_ptr(shared + shared_1, cute.make_swizzle(2, 4, 3), Float16),
        cute.make_layout((O_WIDTH, (32, cute.ceil_div(C_WIDTH, 32))), stride=(32, (1, O_WIDTH * 32))),
    )
    w_3_tile = cute.make_tensor(
        cute.recast_ptr(shared + shared_2, cute.make_swizzle(2, 4, 3), Float16),
        cute.make_layout((O_WIDTH, (32, cute.ceil_div(C_WIDTH, 32))), stride=(32, (1, O_WIDTH * 32))),
    )
    w_4_tile = cute.make_tensor(
        cute.recast_ptr(shared + shared_3, cute.make_swizzle(2, 4, 3), Float16),
        cute.make_layout((O_WIDTH, (32, cute.ceil_div(C_WIDTH, 32))), stride=(32, (1, O_WIDTH * 32))),
    )
    w_5_tile = cute.make_tensor(
        cute.recast_ptr(shared + shared_4, cute.make_swizzle(2, 4, 3), Float16),
        cute.make_layout((O_WIDTH, (32, cute.ceil_div(C_WIDTH, 32))), stride=(32, (1, O_WIDTH * 32))),
    )
    w_6_tile = cute.make_tensor(
        cute.recast_ptr(shared + shared_5, cute.make_swizzle(2, 4, 3), Float16),
        cute.make_layout((O_WIDTH, (32, cute.ceil_div(C_WIDTH, 32))), stride=(32, (1, O_WIDTH * 32))),
    )
    w_7_tile = cute.make_tensor(
        cute.recast_ptr(shared + shared_6, cute.make_swizzle(2, 4, 3), Float16),
        cute.make_layout((O_WIDTH, (32, cute.ceil_div(C_WIDTH, 32))), stride=(32, (1, O_WIDTH * 32))),
    )
    w_8_tile = cute.make_tensor(
        cute.recast_ptr(shared + shared_7, cute.make_swizzle(2, 4, 3), Float16),
        cute.make_layout((O_WIDTH, (32, cute.ceil_div(C_WIDTH, 32))), stride=(32, (1, O_WIDTH * 32))),
    )
    w_9_tile = cute.make_tensor(
        cute.recast_ptr(shared + shared_8, cute.make_swizzle(2, 4, 3), Float16),
        cute.make_layout((O_WIDTH, (32, cute.ceil_div(C_WIDTH, 32))), stride=(32, (1, O_WIDTH * 32))),
    )
    x_tile = cute.make_tensor(
        cute.recast_ptr(shared + shared_9, cute.make_swizzle(2, 4, 3), Float16),
        cute.make_layout((6, 34, (32, cute.ceil_div(C_WIDTH, 32))), stride=(34 * 32, 32, (1, 204 * 32))),
    )
    x_tile1 = cute.make_tensor(
        cute.recast_ptr(shared + shared_9 + 2048, cute.make_swizzle(2, 4, 3), Float16),
        cute.make_layout((6, 34, (32, cute.ceil_div(C_WIDTH, 32))), stride=(34 * 32, 32, (1, 204 * 32))),
    )
    x_tile0 = cute.make_tensor(
        cute.recast_ptr(shared + shared_9, cute.make_swizzle(2, 4, 3), Float16),
        cute.make_layout(((32, 4), (32, cute.ceil_div(C_WIDTH, 32))), stride=((1 * 32, 34 * 32), (1, 204 * 32))),
    )
    x_2_tile = cute.make_tensor(
        cute.recast_ptr(shared + shared_9 + 2176, cute.make_swizzle(2, 4, 3), Float16),
        cute.make_layout((6, 34, (32, cute.ceil_div(C_WIDTH, 32))), stride=(34 * 32, 32, (1, 204 * 32))),
    )
    x_2_tile0 = cute.make_tensor(
        cute.recast_ptr(shared + shared_9 + 2176, cute.make_swizzle(2, 4, 3), Float16),
        cute.make_layout(((32, 4), (32, cute.ceil_div(C_WIDTH, 32))), stride=((1 * 32, 34 * 32), (1, 204 * 32))),
    )
    x_3_tile = cute.make_tensor(
        cute.recast_ptr(shared + shared_9 + 4352, cute.make_swizzle(2, 4, 3), Float16),
        cute.make_layout((6, 34, (32, cute.ceil_div(C_WIDTH, 32))), stride=(34 * 32, 32, (1, 204 * 32))),
    )
    x_3_tile0 = cute.make_tensor(
        cute.recast_ptr(shared + shared_9 + 4352, cute.make_swizzle(2, 4, 3), Float16),
        cute.make_layout(((32, 4), (32, cute.ceil_div(C_WIDTH, 32))), stride=((1 * 32, 34 * 32), (1, 204 * 32))),
    )
    x_4_tile = cute.make_tensor(
        cute.recast_ptr(shared + shared_9 + 64, cute.make_swizzle(2, 4, 3), Float16),
        cute.make_layout((6, 34, (32, cute.ceil_div(C_WIDTH, 32))), stride=(34 * 32, 32, (1, 204 * 32))),
    )
    x_4_tile0 = cute.make_tensor(
        cute.recast_ptr(shared + shared_9 + 64, cute.make_swizzle(2, 4, 3), Float16),
        cute.make_layout(((32, 4), (32, cute.ceil_div(C_WIDTH, 32))), stride=((1 * 32, 34 * 32), (1, 204 * 32))),
    )
    x_5_tile = cute.make_tensor(
        cute.recast_ptr(shared + shared_9 + 2240, cute.make_swizzle(2, 4, 3), Float16),
        cute.make_layout((6, 34, (32, cute.ceil_div(C_WIDTH, 32))), stride=(34 * 32, 32, (1, 204 * 32))),
    )
    x_5_tile0 = cute.make_tensor(
        cute.recast_ptr(shared + shared_9 + 2240, cute.make_swizzle(2, 4, 3), Float16),
        cute.make_layout(((32, 4), (32, cute.ceil_div(C_WIDTH, 32))), stride=((1 * 32, 34 * 32), (1, 204 * 32))),
    )
    x_6_tile = cute.make_tensor(
        cute.recast_ptr(shared + shared_9 + 4416, cute.make_swizzle(2, 4, 3), Float16),
        cute.make_layout((6, 34, (32, cute.ceil_div(C_WIDTH, 32))), stride=(34 * 32, 32, (1, 204 * 32))),
    )
    x_6_tile0 = cute.make_tensor(
        cute.recast_ptr(shared + shared_9 + 4416, cute.make_swizzle(2, 4, 3), Float16),
        cute.make_layout(((32, 4), (32, cute.ceil_div(C_WIDTH, 32))), stride=((1 * 32, 34 * 32), (1, 204 * 32))),
    )
    x_7_tile = cute.make_tensor(
        cute.recast_ptr(shared + shared_9 + 128, cute.make_swizzle(2, 4, 3), Float16),
        cute.make_layout((6, 34, (32, cute.ceil_div(C_WIDTH, 32))), stride=(34 * 32, 32, (1, 204 * 32))),
    )
    x_7_tile0 = cute.make_tensor(
        cute.recast_ptr(shared + shared_9 + 128, cute.make_swizzle(2, 4, 3), Float16),
        cute.make_layout(((32, 4), (32, cute.ceil_div(C_WIDTH, 32))), stride=((1 * 32, 34 * 32), (1, 204 * 32))),
    )
    x_8_tile = cute.make_tensor(
        cute.recast_ptr(shared + shared_9 + 2304, cute.make_swizzle(2, 4, 3), Float16),
        cute.make_layout((6, 34, (32, cute.ceil_div(C_WIDTH, 32))), stride=(34 * 32, 32, (1, 204 * 32))),
    )
    x_8_tile0 = cute.make_tensor(
        cute.recast_ptr(shared + shared_9 + 2304, cute.make_swizzle(2, 4, 3), Float16),
        cute.make_layout(((32, 4), (32, cute.ceil_div(C_WIDTH, 32))), stride=((1 * 32, 34 * 32), (1, 204 * 32))),
    )
    x_9_tile = cute.make_tensor(
        cute.recast_ptr(shared + shared_9 + 4480, cute.make_swizzle(2, 4, 3), Float16),
        cute.make_layout((6, 34, (32, cute.ceil_div(C_WIDTH, 32))), stride=(34 * 32, 32, (1, 204 * 32))),
    )
    x_9_tile0 = cute.make_tensor(
        cute.recast_ptr(shared + shared_9 + 4480, cute.make_swizzle(2, 4, 3), Float16),
        cute.make_layout(((32, 4), (32, cute.ceil_div(C_WIDTH, 32))), stride=((1 * 32, 34 * 32), (1, 204 * 32))),
    )
    stored_tile_28 = cute.make_tensor(
        cute.recast_ptr(shared + shared_9, None, Float16),
        cute.make_layout((4, O_WIDTH, 32), stride=(40 * O_WIDTH, 40, 1)),
    )
    thread = cute.arch.thread_idx()[0]
    tile = cute.arch.block_idx()[0]
    offs_o = cute.make_rmem_tensor(o_n, Int32)
    for o_i in cutlass.range(o_n, unroll_full=True):
        offs_o[o_i] = Int32(o_axis((thread, o_i)))
    mask_o = cute.make_rmem_tensor(o_n, Boolean)
    for o_i in cutlass.range(o_n, unroll_full=True):
        mask_o[o_i] = Boolean((offs_o[o_i] < O) | EVEN_O)
    offs_o_1 = cute.make_rmem_tensor(o_n1, Int32)
    for o_i in cutlass.range(o_n1, unroll_full=True):
        offs_o_1[o_i] = Int32(o_axis_1((thread, o_i)))
    mask_o_1 = cute.make_rmem_tensor(o_n1, Boolean)
    for o_i in cutlass.range(o_n1, unroll_full=True):
        mask_o_1[o_i] = Boolean((offs_o_1[o_i] < O) | EVEN_O)
    offs_c = cute.make_rmem_tensor(c_n, Int32)
    for c_i in cutlass.range(c_n, unroll_full=True):
        offs_c[c_i] = Int32(c_axis((thread, c_i)))
    mask_c = cute.make_rmem_tensor(c_n, Boolean)
    for c_i in cutlass.range(c_n, unroll_full=True):
        mask_c[c_i] = Boolean((offs_c[c_i] < C) | EVEN_C)
    for o_i in cutlass.range(o_n1, unroll_full=True):
        for c_i in cutlass.range(0, c_n, wide(8, ALIGNED_W), unroll_full=True):
            copy_async(
                vector(w_tile, (o_axis_1((thread, o_i)), c_axis((thread, c_i))), wide(8, ALIGNED_W)),
                w_ptr,
                offs_o_1[o_i] * C + offs_c[c_i],
                mask_o_1[o_i] & mask_c[c_i],
            )
    for o_i in cutlass.range(o_n1, unroll_full=True):
        offs_o_1[o_i] = Int32(o_axis_1((thread, o_i)))
    for o_i in cutlass.range(o_n1, unroll_full=True):
        mask_o_1[o_i] = Boolean((offs_o_1[o_i] < O) | EVEN_O)
    for c_i in cutlass.range(c_n, unroll_full=True):
        offs_c[c_i] = Int32(c_axis((thread, c_i)))
    for c_i in cutlass.range(c_n, unroll_full=True):
        mask_c[c_i] = Boolean((offs_c[c_i] < C) | EVEN_C)
    for o_i in cutlass.range(o_n1, unroll_full=True):
        for c_i in cutlass.range(0, c_n, wide(8, ALIGNED_W_1), unroll_full=True):
            copy_async(
                vector(w_2_tile, (o_axis_1((thread, o_i)), c_axis((thread, c_i))), wide(8, ALIGNED_W_1)),
                w_ptr,
                3 * O * C + offs_o_1[o_i] * C + offs_c[c_i],
                mask_o_1[o_i] & mask_c[c_i],
            )
    for o_i in cutlass.range(o_n1, unroll_full=True):
        offs_o_1[o_i] = Int32(o_axis_1((thread, o_i)))
    for o_i in cutlass.range(o_n1, unroll_full=True):
        mask_o_1[o_i] = Boolean((offs_o_1[o_i] < O) | EVEN_O)
    for c_i in cutlass.range(c_n, unroll_full=True):
        offs_c[c_i] = Int32(c_axis((thread, c_i)))
    for c_i in cutlass.range(c_n, unroll_full=True):
        mask_c[c_i] = Boolean((offs_c[c_i] < C) | EVEN_C)
    for o_i in cutlass.range(o_n1, unroll_full=True):
        for c_i in cutlass.range(0, c_n, wide(8, ALIGNED_W_1), unroll_full=True):
            copy_async(
                vector(w_3_tile, (o_axis_1((thread, o_i)), c_axis((thread, c_i))), wide(8, ALIGNED_W_1)),
                w_ptr,
                6 * O * C + offs_o_1[o_i] * C + offs_c[c_i],
                mask_o_1[o_i] & mask_c[c_i],
            )
    for o_i in cutlass.range(o_n1, unroll_full=True):
        offs_o_1[o_i] = Int32(o_axis_1((thread, o_i)))
    for o_i in cutlass.range(o_n1, unroll_full=True):
        mask_o_1[o_i] = Boolean((offs_o_1[o_i] < O) | EVEN_O)
    for c_i in cutlass.range(c_n, unroll_full=True):
        offs_c[c_i] = Int32(c_axis((thread, c_i)))
    for c_i in cutlass.range(c_n, unroll_full=True):
        mask_c[c_i] = Boolean((offs_c[c_i] < C) | EVEN_C)
    for o_i in cutlass.range(o_n1, unroll_full=True):
        for c_i in cutlass.range(0, c_n, wide(8, ALIGNED_W_1), unroll_full=True):
            copy_async(
                vector(w_4_tile, (o_axis_1((thread, o_i)), c_axis((thread, c_i))), wide(8, ALIGNED_W_1)),
                w_ptr,
                O * C + offs_o_1[o_i] * C + offs_c[c_i],
                mask_o_1[o_i] & mask_c[c_i],
            )
    for o_i in cutlass.range(o_n1, unroll_full=True):
        offs_o_1[o_i] = Int32(o_axis_1((thread, o_i)))
    for o_i in cutlass.range(o_n1, unroll_full=True):
        mask_o_1[o_i] = Boolean((offs_o_1[o_i] < O) | EVEN_O)
    for c_i in cutlass.range(c_n, unroll_full=True):
        offs_c[c_i] = Int32(c_axis((thread, c_i)))
    for c_i in cutlass.range(c_n, unroll_full=True):
        mask_c[c_i] = Boolean((offs_c[c_i] < C) | EVEN_C)
    for o_i in cutlass.range(o_n1, unroll_full=True):
        for c_i in cutlass.range(0, c_n, wide(8, ALIGNED_W_1), unroll_full=True):
            copy_async(
                vector(w_5_tile, (o_axis_1((thread, o_i)), c_axis((thread, c_i))), wide(8, ALIGNED_W_1)),
                w_ptr,
                3 * O * C + O * C + offs_o_1[o_i] * C + offs_c[c_i],
                mask_o_1[o_i] & mask_c[c_i],
            )
    for o_i in cutlass.range(o_n1, unroll_full=True):
        offs_o_1[o_i] = Int32(o_axis_1((thread, o_i)))
    for o_i in cutlass.range(o_n1, unroll_full=True):
        mask_o_1[o_i] = Boolean((offs_o_1[o_i] < O) | EVEN_O)
    for c_i in cutlass.range(c_n, unroll_full=True):
        offs_c[c_i] = Int32(c_axis((thread, c_i)))
    for c_i in cutlass.range(c_n, unroll_full=True):
        mask_c[c_i] = Boolean((offs_c[c_i] < C) | EVEN_C)
    for o_i in cutlass.range(o_n1, unroll_full=True):
        for c_i in cutlass.range(0, c_n, wide(8, ALIGNED_W_1), unroll_full=True):
            copy_async(
                vector(w_6_tile, (o_axis_1((thread, o_i)), c_axis((thread, c_i))), wide(8, ALIGNED_W_1)),
                w_ptr,
                6 * O * C + O * C + offs_o_1[o_i] * C + offs_c[c_i],
                mask_o_1[o_i] & mask_c[c_i],
            )
    for o_i in cutlass.range(o_n1, unroll_full=True):
        offs_o_1[o_i] = Int32(o_axis_1((thread, o_i)))
    for o_i in cutlass.range(o_n1, unroll_full=True):
        mask_o_1[o_i] = Boolean((offs_o_1[o_i] < O) | EVEN_O)
    for c_i in cutlass.range(c_n, unroll_full=True):
        offs_c[c_i] = Int32(c_axis((thread, c_i)))
    for c_i in cutlass.range(c_n, unroll_full=True):
        mask_c[c_i] = Boolean((offs_c[c_i] < C) | EVEN_C)
    for o_i in cutlass.range(o_n1, unroll_full=True):
        for c_i in cutlass.range(0, c_n, wide(8, ALIGNED_W_1), unroll_full=True):
            copy_async(
                vector(w_7_tile, (o_axis_1((thread, o_i)), c_axis((thread, c_i))), wide(8, ALIGNED_W_1)),
                w_ptr,
                2 * O * C + offs_o_1[o_i] * C + offs_c[c_i],
                mask_o_1[o_i] & mask_c[c_i],
            )
    for o_i in cutlass.range(o_n1, unroll_full=True):
        offs_o_1[o_i] = Int32(o_axis_1((thread, o_i)))
    for o_i in cutlass.range(o_n1, unroll_full=True):
        mask_o_1[o_i] = Boolean((offs_o_1[o_i] < O) | EVEN_O)
    for c_i in cutlass.range(c_n, unroll_full=True):
        offs_c[c_i] = Int32(c_axis((thread, c_i)))
    for c_i in cutlass.range(c_n, unroll_full=True):
        mask_c[c_i] = Boolean((offs_c[c_i] < C) | EVEN_C)
    for o_i in cutlass.range(o_n1, unroll_full=True):
        for c_i in cutlass.range(0, c_n, wide(8, ALIGNED_W_1), unroll_full=True):
            copy_async(
                vector(w_8_tile, (o_axis_1((thread, o_i)), c_axis((thread, c_i))), wide(8, ALIGNED_W_1)),
                w_ptr,
                3 * O * C + 2 * O * C + offs_o_1[o_i] * C + offs_c[c_i],
                mask_o_1[o_i] & mask_c[c_i],
            )
    for o_i in cutlass.range(o_n1, unroll_full=True):
        offs_o_1[o_i] = Int32(o_axis_1((thread, o_i)))
    for o_i in cutlass.range(o_n1, unroll_full=True):
        mask_o_1[o_i] = Boolean((offs_o_1[o_i] < O) | EVEN_O)
    for c_i in cutlass.range(c_n, unroll_full=True):
        offs_c[c_i] = Int32(c_axis((thread, c_i)))
    for c_i in cutlass.range(c_n, unroll_full=True):
        mask_c[c_i] = Boolean((offs_c[c_i] < C) | EVEN_C)
    for o_i in cutlass.range(o_n1, unroll_full=True):
        for c_i in cutlass.range(0, c_n, wide(8, ALIGNED_W_1), unroll_full=True):
            copy_async(
                vector(w_9_tile, (o_axis_1((thread, o_i)), c_axis((thread, c_i))), wide(8, ALIGNED_W_1)),
                w_ptr,
                6 * O * C + 2 * O * C + offs_o_1[o_i] * C + offs_c[c_i],
                mask_o_1[o_i] & mask_c[c_i],
            )
    bias = cute.make_rmem_tensor(o_n, Float32)
    for o_i in cutlass.range(0, o_n, wide(2, ALIGNED_BIAS), unroll_full=True):
        load(vector(bias, o_i, wide(2, ALIGNED_BIAS)), bias_ptr, offs_o[o_i], mask_o[o_i], 0.0)
    tiles_x_p = Int32(cute.ceil_div(H, 4))
    tiles_q = Int32(cute.ceil_div(W, 32))
    x_b_at = Int32(tile // (tiles_x_p * tiles_q))
    x_p_at = Int32(tile // tiles_q % tiles_x_p * 4)
    q_at = Int32(tile % tiles_q * 32)
    offs_x_p_1 = cute.make_rmem_tensor(3, Int32)
    for x_p_i in cutlass.range(3, unroll_full=True):
        offs_x_p_1[x_p_i] = Int32(x_p_at + x_p_axis((thread, x_p_i)))
    offs_q_1 = Int32(q_at + 32 + q_axis(thread))
    offs_c_1 = cute.make_rmem_tensor(c_n, Int32)
    for c_i in cutlass.range(c_n, unroll_full=True):
        offs_c_1[c_i] = Int32(c_axis_1((thread, c_i)))
    mask_c_1 = cute.make_rmem_tensor(c_n, Boolean)
    for c_i in cutlass.range(c_n, unroll_full=True):
        mask_c_1[c_i] = Boolean((offs_c_1[c_i] < C) | EVEN_C)
    part_1 = cute.make_rmem_tensor(cute.make_layout((3, c_n), stride=(c_n, 1)), Float16)
    if thread < 16:
        for x_p_i in cutlass.range(3, unroll_full=True):
            for c_i in cutlass.range(c_n, unroll_full=True):
                part_1[x_p_i, c_i] = Float16(
                    get(x_ptr, x_b_at * C * H * W + offs_c_1[c_i] * H * W + (offs_x_p_1[x_p_i] - 1) * W + offs_q_1 - 1, mask_c_1[c_i] & (offs_x_p_1[x_p_i] - 1 >= 0) & (offs_x_p_1[x_p_i] - 1 < H) & (offs_q_1 - 1 >= 0) & (offs_q_1 - 1 < W), 0.0),
                )
    offs_x_p_2 = cute.make_rmem_tensor(6, Int32)
    for x_p_i in cutlass.range(6, unroll_full=True):
        offs_x_p_2[x_p_i] = Int32(x_p_at + x_p_axis_1((thread, x_p_i)))
    offs_q_2 = Int32(q_at + q_axis_1(thread))
    offs_c_2 = cute.make_rmem_tensor(c_n, Int32)
    for c_i in cutlass.range(c_n, unroll_full=True):
        offs_c_2[c_i] = Int32(c_axis_2((thread, c_i)))
    mask_c_2 = cute.make_rmem_tensor(c_n, Boolean)
    for c_i in cutlass.range(c_n, unroll_full=True):
        mask_c_2[c_i] = Boolean((offs_c_2[c_i] < C) | EVEN_C)
    part_2 = cute.make_rmem_tensor(cute.make_layout((6, c_n), stride=(c_n, 1)), Float16)
    for x_p_i in cutlass.range(6, unroll_full=True):
        for c_i in cutlass.range(c_n, unroll_full=True):
            part_2[x_p_i, c_i] = Float16(
                get(x_ptr, x_b_at * C * H * W + offs_c_2[c_i] * H * W + (offs_x_p_2[x_p_i] - 1) * W + offs_q_2 - 1, mask_c_2[c_i] & (offs_x_p_2[x_p_i] - 1 >= 0) & (offs_x_p_2[x_p_i] - 1 < H) & (offs_q_2 - 1 >= 0) & (offs_q_2 - 1 < W), 0.0),
            )
    if thread < 16:
        for x_p_i in cutlass.range(3, unroll_full=True):
            for c_i in cutlass.range(0, c_n, 8, unroll_full=True):
                copy_run(
                    vector(part_1, (x_p_i, c_i), 8),
                    vector(x_tile1, (x_p_axis((thread, x_p_i)), q_axis(thread), c_axis_1((thread, c_i))), 8),
                )
    cute.arch.fence_proxy("async.shared", space="cta")
    cute.arch.sync_threads()
    for x_p_i in cutlass.range(6, unroll_full=True):
        for c_i in cutlass.range(0, c_n, 8, unroll_full=True):
            copy_run(
                vector(part_2, (x_p_i, c_i), 8),
                vector(x_tile, (x_p_axis_1((thread, x_p_i)), q_axis_1(thread), c_axis_2((thread, c_i))), 8),
            )
    cute.arch.cp_async_commit_group()
    cute.arch.cp_async_wait_group(0)
    part_3 = cute.make_rmem_tensor(
        cute.make_layout(((2, 4 // 2), (2, o_n // 2)), stride=((2, 2 * o_n), (1, 4))),
        Float32,
    )
    for x_p_q_i in cutlass.range(4, unroll_full=True):
        for o_i in cutlass.range(o_n, unroll_full=True):
            part_3[x_p_q_i, o_i] = Float32(0.0)
    cute.arch.fence_proxy("async.shared", space="cta")
    cute.arch.sync_threads()
    part_4 = cute.make_rmem_tensor(
        cute.make_layout(((2, 4 // 2), (2, 2, c_n1 // 4)), stride=((2, 8 * (c_n1 // 4)), (1, 4, 8))),
        Float16,
    )
    for x_p_q_i in cutlass.range_constexpr(0, 4, 2):
        for c_i in cutlass.range_constexpr(0, c_n1, 4):
            load_matrices(
                x_tile0,
                (thread // 32 * 16 + x_p_q_i % 2 * 8 + x_p_q_i // 2 * 64 + thread % 8 + thread // 16 % 2 * 8, c_i % 2 + c_i // 2 * 8 + thread // 8 % 2 * 8),
                part_4,
                [(x_p_q_i, c_i), (x_p_q_i, c_i + 1), (x_p_q_i, c_i + 2), (x_p_q_i, c_i + 3), (x_p_q_i + 1, c_i), (x_p_q_i + 1, c_i + 1), (x_p_q_i + 1, c_i + 2), (x_p_q_i + 1, c_i + 3)],
                False,
            )
    warpgroup.fence()
    for x_p_q_i in cutlass.range_constexpr(0, 4, 2):
        for o_i in cutlass.range_constexpr(0, o_n, 8):
            for c_from in cutlass.range_constexpr(0, C_WIDTH, 16):
                warpgroup_mma(
                    result(part_3, (x_p_q_i, o_i), 32),
                    operand(part_4, (x_p_q_i, c_from // 16 * 4), [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (0, 3), (1, 2), (1, 3)]),
                    matrix(w_tile, (o_i % 2 + o_i // 2 * 8, c_from), (32, 16), True, 32, O_WIDTH),
                    (64, 32, 16),
                )
    warpgroup.commit_group()
    warpgroup.wait_group(0)
    acc = cute.make_rmem_tensor(cute.make_layout((2, 2, o_n), stride=(2 * o_n, o_n, 1)), Float32)
    for x_p_i in cutlass.range(2, unroll_full=True):
        for q_i in cutlass.range(2, unroll_full=True):
            for o_i in cutlass.range(o_n, unroll_full=True):
                acc[x_p_i, q_i, o_i] = part_3[x_p_i * 2 + q_i, o_i]
    part_5 = cute.make_rmem_tensor(
        cute.make_layout(((2, 4 // 2), (2, o_n // 2)), stride=((2, 2 * o_n), (1, 4))),
        Float32,
    )
    for x_p_i in cutlass.range(2, unroll_full=True):
        for q_i in cutlass.range(2, unroll_full=True):
            for o_i in cutlass.range(o_n, unroll_full=True):
                part_5[x_p_i * 2 + q_i, o_i] = acc[x_p_i, q_i, o_i]
    part_6 = cute.make_rmem_tensor(
        cute.make_layout(((2, 4 // 2), (2, 2, c_n1 // 4)), stride=((2, 8 * (c_n1 // 4)), (1, 4, 8))),
        Float16,
    )
    for x_p_q_i in cutlass.range_constexpr(0, 4, 2):
        for c_i in cutlass.range_constexpr(0, c_n1, 4):
            load_matrices(
                x_2_tile0,
                (thread // 32 * 16 + x_p_q_i % 2 * 8 + x_p_q_i // 2 * 64 + thread % 8 + thread // 16 % 2 * 8, c_i % 2 + c_i // 2 * 8 + thread // 8 % 2 * 8),
                part_6,
                [(x_p_q_i, c_i), (x_p_q_i, c_i + 1), (x_p_q_i, c_i + 2), (x_p_q_i, c_i + 3), (x_p_q_i + 1, c_i), (x_p_q_i + 1, c_i + 1), (x_p_q_i + 1, c_i + 2), (x_p_q_i + 1, c_i + 3)],
                False,
            )
    warpgroup.fence()
    for x_p_q_i in cutlass.range_constexpr(0, 4, 2):
        for o_i in cutlass.range_constexpr(0, o_n, 8):
            for c_from in cutlass.range_constexpr(0, C_WIDTH, 16):
                warpgroup_mma(
                    result(part_5, (x_p_q_i, o_i), 32),
                    operand(part_6, (x_p_q_i, c_from // 16 * 4), [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (0, 3), (1, 2), (1, 3)]),
                    matrix(w_2_tile, (o_i % 2 + o_i // 2 * 8, c_from), (32, 16), True, 32, O_WIDTH),
                    (64, 32, 16),
                )
    warpgroup.commit_group()
    warpgroup.wait_group(0)
    for x_p_i in cutlass.range(2, unroll_full=True):
        for q_i in cutlass.range(2, unroll_full=True):
            for o_i in cutlass.range(o_n, unroll_full=True):
                acc[x_p_i, q_i, o_i] = part_5[x_p_i * 2 + q_i, o_i]
    part_7 = cute.make_rmem_tensor(
        cute.make_layout(((2, 4 // 2), (2, o_n // 2)), stride=((2, 2 * o_n), (1, 4))),
        Float32,
    )
    for x_p_i in cutlass.range(2, unroll_full=True):
        for q_i in cutlass.range(2, unroll_full=True):
            for o_i in cutlass.range(o_n, unroll_full=True):
                part_7[x_p_i * 2 + q_i, o_i] = acc[x_p_i, q_i, o_i]
    part_8 = cute.make_rmem_tensor(
        cute.make_layout(((2, 4 // 2), (2, 2, c_n1 // 4)), stride=((2, 8 * (c_n1 // 4)), (1, 4, 8))),
        Float16,
    )
    for x_p_q_i in cutlass.range_constexpr(0, 4, 2):
        for c_i in cutlass.range_constexpr(0, c_n1, 4):
            load_matrices(
                x_3_tile0,
                (thread // 32 * 16 + x_p_q_i % 2 * 8 + x_p_q_i // 2 * 64 + thread % 8 + thread // 16 % 2 * 8, c_i % 2 + c_i // 2 * 8 + thread // 8 % 2 * 8),
                part_8,
                [(x_p_q_i, c_i), (x_p_q_i, c_i + 1), (x_p_q_i, c_i + 2), (x_p_q_i, c_i + 3), (x_p_q_i + 1, c_i), (x_p_q_i + 1, c_i + 1), (x_p_q_i + 1, c_i + 2), (x_p_q_i + 1, c_i + 3)],
                False,
            )
    warpgroup.fence()
    for x_p_q_i in cutlass.range_constexpr(0, 4, 2):
        for o_i in cutlass.range_constexpr(0, o_n, 8):
            for c_from in cutlass.range_constexpr(0, C_WIDTH, 16):
                warpgroup_mma(
                    result(part_7, (x_p_q_i, o_i), 32),
                    operand(part_8, (x_p_q_i, c_from // 16 * 4), [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (0, 3), (1, 2), (1, 3)]),
                    matrix(w_3_tile, (o_i % 2 + o_i // 2 * 8, c_from), (32, 16), True, 32, O_WIDTH),
                    (64, 32, 16),
                )
    warpgroup.commit_group()
    warpgroup.wait_group(0)
    for x_p_i in cutlass.range(2, unroll_full=True):
        for q_i in cutlass.range(2, unroll_full=True):
            for o_i in cutlass.range(o_n, unroll_full=True):
                acc[x_p_i, q_i, o_i] = part_7[x_p_i * 2 + q_i, o_i]
    part_9 = cute.make_rmem_tensor(
        cute.make_layout(((2, 4 // 2), (2, o_n // 2)), stride=((2, 2 * o_n), (1, 4))),
        Float32,
    )
    for x_p_i in cutlass.range(2, unroll_full=True):
        for q_i in cutlass.range(2, unroll_full=True):
            for o_i in cutlass.range(o_n, unroll_full=True):
                part_9[x_p_i * 2 + q_i, o_i] = acc[x_p_i, q_i, o_i]
    part_10 = cute.make_rmem_tensor(
        cute.make_layout(((2, 4 // 2), (2, 2, c_n1 // 4)), stride=((2, 8 * (c_n1 // 4)), (1, 4, 8))),
        Float16,
    )
    for x_p_q_i in cutlass.range_constexpr(0, 4, 2):
        for c_i in cutlass.range_constexpr(0, c_n1, 4):
            load_matrices(
                x_4_tile0,
                (thread // 32 * 16 + x_p_q_i % 2 * 8 + x_p_q_i // 2 * 64 + thread % 8 + thread // 16 % 2 * 8, c_i % 2 + c_i // 2 * 8 + thread // 8 % 2 * 8),
                part_10,
                [(x_p_q_i, c_i), (x_p_q_i, c_i + 1), (x_p_q_i, c_i + 2), (x_p_q_i, c_i + 3), (x_p_q_i + 1, c_i), (x_p_q_i + 1, c_i + 1), (x_p_q_i + 1, c_i + 2), (x_p_q_i + 1, c_i + 3)],
                False,
            )
    warpgroup.fence()
    for x_p_q_i in cutlass.range_constexpr(0, 4, 2):
        for o_i in cutlass.range_constexpr(0, o_n, 8):
            for c_from in cutlass.range_constexpr(0, C_WIDTH, 16):
                warpgroup_mma(
                    result(part_9, (x_p_q_i, o_i), 32),
                    operand(part_10, (x_p_q_i, c_from // 16 * 4), [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (0, 3), (1, 2), (1, 3)]),
                    matrix(w_4_tile, (o_i % 2 + o_i // 2 * 8, c_from), (32, 16), True, 32, O_WIDTH),
                    (64, 32, 16),
                )
    warpgroup.commit_group()
    warpgroup.wait_group(0)
    for x_p_i in cutlass.range(2, unroll_full=True):
        for q_i in cutlass.range(2, unroll_full=True):
            for o_i in cutlass.range(o_n, unroll_full=True):
                acc[x_p_i, q_i, o_i] = part_9[x_p_i * 2 + q_i, o_i]
    part_11 = cute.make_rmem_tensor(
        cute.make_layout(((2, 4 // 2), (2, o_n // 2)), stride=((2, 2 * o_n), (1, 4))),
        Float32,
    )
    for x_p_i in cutlass.range(2, unroll_full=True):
        for q_i in cutlass.range(2, unroll_full=True):
            for o_i in cutlass.range(o_n, unroll_full=True):
                part_11[x_p_i * 2 + q_i, o_i] = acc[x_p_i, q_i, o_i]
    part_12 = cute.make_rmem_tensor(
        cute.make_layout(((2, 4 // 2), (2, 2, c_n1 // 4)), stride=((2, 8 * (c_n1 // 4)), (1, 4, 8))),
        Float16,
    )
    for x_p_q_i in cutlass.range_constexpr(0, 4, 2):
        for c_i in cutlass.range_constexpr(0, c_n1, 4):
            load_matrices(
                x_5_tile0,
                (thread // 32 * 16 + x_p_q_i % 2 * 8 + x_p_q_i // 2 * 64 + thread % 8 + thread // 16 % 2 * 8, c_i % 2 + c_i // 2 * 8 + thread // 8 % 2 * 8),
                part_12,
                [(x_p_q_i, c_i), (x_p_q_i, c_i + 1), (x_p_q_i, c_i + 2), (x_p_q_i, c_i + 3), (x_p_q_i + 1, c_i), (x_p_q_i + 1, c_i + 1), (x_p_q_i + 1, c_i + 2), (x_p_q_i + 1, c_i + 3)],
                False,
            )
    warpgroup.fence()
    for x_p_q_i in cutlass.range_constexpr(0, 4, 2):
        for o_i in cutlass.range_constexpr(0, o_n, 8):
            for c_from in cutlass.range_constexpr(0, C_WIDTH, 16):
                warpgroup_mma(
                    result(part_11, (x_p_q_i, o_i), 32),
                    operand(part_12, (x_p_q_i, c_from // 16 * 4), [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (0, 3), (1, 2), (1, 3)]),
                    matrix(w_5_tile, (o_i % 2 + o_i // 2 * 8, c_from), (32, 16), True, 32, O_WIDTH),
                    (64, 32, 16),
                )
    warpgroup.commit_group()
    warpgroup.wait_group(0)
    for x_p_i in cutlass.range(2, unroll_full=True):
        for q_i in cutlass.range(2, unroll_full=True):
            for o_i in cutlass.range(o_n, unroll_full=True):
                acc[x_p_i, q_i, o_i] = part_11[x_p_i * 2 + q_i, o_i]
    part_13 = cute.make_rmem_tensor(
        cute.make_layout(((2, 4 // 2), (2, o_n // 2)), stride=((2, 2 * o_n), (1, 4))),
        Float32,
    )
    for x_p_i in cutlass.range(2, unroll_full=True):
        for q_i in cutlass.range(2, unroll_full=True):
            for o_i in cutlass.range(o_n, unroll_full=True):
                part_13[x_p_i * 2 + q_i, o_i] = acc[x_p_i, q_i, o_i]
    part_14 = cute.make_rmem_tensor(
        cute.make_layout(((2, 4 // 2), (2, 2, c_n1 // 4)), stride=((2, 8 * (c_n1 // 4)), (1, 4, 8))),
        Float16,
    )
    for x_p_q_i in cutlass.range_constexpr(0, 4, 2):
        for c_i in cutlass.range_constexpr(0, c_n1, 4):
            load_matrices(
                x_6_tile0,
                (thread // 32 * 16 + x_p_q_i % 2 * 8 + x_p_q_i // 2 * 64 + thread % 8 + thread // 16 % 2 * 8, c_i % 2 + c_i // 2 * 8 + thread // 8 % 2 * 8),
                part_14,
                [(x_p_q_i, c_i), (x_p_q_i, c_i + 1), (x_p_q_i, c_i + 2), (x_p_q_i, c_i + 3), (x_p_q_i + 1, c_i), (x_p_q_i + 1, c_i + 1), (x_p_q_i + 1, c_i + 2), (x_p_q_i + 1, c_i + 3)],
                False,
            )
    warpgroup.fence()
    for x_p_q_i in cutlass.range_constexpr(0, 4, 2):
        for o_i in cutlass.range_constexpr(0, o_n, 8):
            for c_from in cutlass.range_constexpr(0, C_WIDTH, 16):
                warpgroup_mma(
                    result(part_13, (x_p_q_i, o_i), 32),
                    operand(part_14, (x_p_q_i, c_from // 16 * 4), [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (0, 3), (1, 2), (1, 3)]),
                    matrix(w_6_tile, (o_i % 2 + o_i // 2 * 8, c_from), (32, 16), True, 32, O_WIDTH),
                    (64, 32, 16),
                )
    warpgroup.commit_group()
    warpgroup.wait_group(0)
    for x_p_i in cutlass.range(2, unroll_full=True):
        for q_i in cutlass.range(2, unroll_full=True):
            for o_i in cutlass.range(o_n, unroll_full=True):
                acc[x_p_i, q_i, o_i] = part_13[x_p_i * 2 + q_i, o_i]
    part_15 = cute.make_rmem_tensor(
        cute.make_layout(((2, 4 // 2), (2, o_n // 2)), stride=((2, 2 * o_n), (1, 4))),
        Float32,
    )
    for x_p_i in cutlass.range(2, unroll_full=True):
        for q_i in cutlass.range(2, unroll_full=True):
            for o_i in cutlass.range(o_n, unroll_full=True):
                part_15[x_p_i * 2 + q_i, o_i] = acc[x_p_i, q_i, o_i]
    part_16 = cute.make_rmem_tensor(
        cute.make_layout(((2, 4 // 2), (2, 2, c_n1 // 4)), stride=((2, 8 * (c_n1 // 4)), (1, 4, 8))),
        Float16,
    )
    for x_p_q_i in cutlass.range_constexpr(0, 4, 2):
        for c_i in cutlass.range_constexpr(0, c_n1, 4):
            load_matrices(
                x_7_tile0,
                (thread // 32 * 16 + x_p_q_i % 2 * 8 + x_p_q_i // 2 * 64 + thread % 8 + thread // 16 % 2 * 8, c_i % 2 + c_i // 2 * 8 + thread // 8 % 2 * 8),
                part_16,
                [(x_p_q_i, c_i), (x_p_q_i, c_i + 1), (x_p_q_i, c_i + 2), (x_p_q_i, c_i + 3), (x_p_q_i + 1, c_i), (x_p_q_i + 1, c_i + 1), (x_p_q_i + 1, c_i + 2), (x_p_q_i + 1, c_i + 3)],
                False,
            )
    warpgroup.fence()
    for x_p_q_i in cutlass.range_constexpr(0, 4, 2):
        for o_i in cutlass.range_constexpr(0, o_n, 8):
            for c_from in cutlass.range_constexpr(0, C_WIDTH, 16):
                warpgroup_mma(
                    result(part_15, (x_p_q_i, o_i), 32),
                    operand(part_16, (x_p_q_i, c_from // 16 * 4), [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (0, 3), (1, 2), (1, 3)]),
                    matrix(w_7_tile, (o_i % 2 + o_i // 2 * 8, c_from), (32, 16), True, 32, O_WIDTH),
                    (64, 32, 16),
                )
    warpgroup.commit_group()
    warpgroup.wait_group(0)
    for x_p_i in cutlass.range(2, unroll_full=True):
        for q_i in cutlass.range(2, unroll_full=True):
            for o_i in cutlass.range(o_n, unroll_full=True):
                acc[x_p_i, q_i, o_i] = part_15[x_p_i * 2 + q_i, o_i]
    part_17 = cute.make_rmem_tensor(
        cute.make_layout(((2, 4 // 2), (2, o_n // 2)), stride=((2, 2 * o_n), (1, 4))),
        Float32,
    )
    for x_p_i in cutlass.range(2, unroll_full=True):
        for q_i in cutlass.range(2, unroll_full=True):
            for o_i in cutlass.range(o_n, unroll_full=True):
                part_17[x_p_i * 2 + q_i, o_i] = acc[x_p_i, q_i, o_i]
    part_18 = cute.make_rmem_tensor(
        cute.make_layout(((2, 4 // 2), (2, 2, c_n1 // 4)), stride=((2, 8 * (c_n1 // 4)), (1, 4, 8))),
        Float16,
    )
    for x_p_q_i in cutlass.range_constexpr(0, 4, 2):
        for c_i in cutlass.range_constexpr(0, c_n1, 4):
            load_matrices(
                x_8_tile0,
                (thread // 32 * 16 + x_p_q_i % 2 * 8 + x_p_q_i // 2 * 64 + thread % 8 + thread // 16 % 2 * 8, c_i % 2 + c_i // 2 * 8 + thread // 8 % 2 * 8),
                part_18,
                [(x_p_q_i, c_i), (x_p_q_i, c_i + 1), (x_p_q_i, c_i + 2), (x_p_q_i, c_i + 3), (x_p_q_i + 1, c_i), (x_p_q_i + 1, c_i + 1), (x_p_q_i + 1, c_i + 2), (x_p_q_i + 1, c_i + 3)],
                False,
            )
    warpgroup.fence()
    for x_p_q_i in cutlass.range_constexpr(0, 4, 2):
        for o_i in cutlass.range_constexpr(0, o_n, 8):
            for c_from in cutlass.range_constexpr(0, C_WIDTH, 16):
                warpgroup_mma(
                    result(part_17, (x_p_q_i, o_i), 32),
                    operand(part_18, (x_p_q_i, c_from // 16 * 4), [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (0, 3), (1, 2), (1, 3)]),
                    matrix(w_8_tile, (o_i % 2 + o_i // 2 * 8, c_from), (32, 16), True, 32, O_WIDTH),
                    (64, 32, 16),
                )
    warpgroup.commit_group()
    warpgroup.wait_group(0)
    for x_p_i in cutlass.range(2, unroll_full=True):
        for q_i in cutlass.range(2, unroll_full=True):
            for o_i in cutlass.range(o_n, unroll_full=True):
                acc[x_p_i, q_i, o_i] = part_17[x_p_i * 2 + q_i, o_i]
    part_19 = cute.make_rmem_tensor(
        cute.make_layout(((2, 4 // 2), (2, o_n // 2)), stride=((2, 2 * o_n), (1, 4))),
        Float32,
    )
    for x_p_i in cutlass.range(2, unroll_full=True):
        for q_i in cutlass.range(2, unroll_full=True):
            for o_i in cutlass.range(o_n, unroll_full=True):
                part_19[x_p_i * 2 + q_i, o_i] = acc[x_p_i, q_i, o_i]
    part_20 = cute.make_rmem_tensor(
        cute.make_layout(((2, 4 // 2), (2, 2, c_n1 // 4)), stride=((2, 8 * (c_n1 // 4)), (1, 4, 8))),
        Float16,
    )
    for x_p_q_i in cutlass.range_constexpr(0, 4, 2):
        for c_i in cutlass.range_constexpr(0, c_n1, 4):
            load_matrices(
                x_9_tile0,
                (thread // 32 * 16 + x_p_q_i % 2 * 8 + x_p_q_i // 2 * 64 + thread % 8 + thread // 16 % 2 * 8, c_i % 2 + c_i // 2 * 8 + thread // 8 % 2 * 8),
                part_20,
                [(x_p_q_i, c_i), (x_p_q_i, c_i + 1), (x_p_q_i, c_i + 2), (x_p_q_i, c_i + 3), (x_p_q_i + 1, c_i), (x_p_q_i + 1, c_i + 1), (x_p_q_i + 1, c_i + 2), (x_p_q_i + 1, c_i + 3)],
                False,
            )
    warpgroup.fence()
    for x_p_q_i in cutlass.range_constexpr(0, 4, 2):
        for o_i in cutlass.range_constexpr(0, o_n, 8):
            for c_from in cutlass.range_constexpr(0, C_WIDTH, 16):
                warpgroup_mma(
                    result(part_19, (x_p_q_i, o_i), 32),
                    operand(part_20, (x_p_q_i, c_from // 16 * 4), [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (0, 3), (1, 2), (1, 3)]),
                    matrix(w_9_tile, (o_i % 2 + o_i // 2 * 8, c_from), (32, 16), True, 32, O_WIDTH),
                    (64, 32, 16),
                )
    warpgroup.commit_group()
    warpgroup.wait_group(0)
    for x_p_i in cutlass.range(2, unroll_full=True):
        for q_i in cutlass.range(2, unroll_full=True):
            for o_i in cutlass.range(o_n, unroll_full=True):
                acc[x_p_i, q_i, o_i] = part_19[x_p_i * 2 + q_i, o_i]
    y = cute.make_rmem_tensor(cute.make_layout((o_n, 2, 2), stride=(2 * 2, 2, 1)), Float16)
    for o_i in cutlass.range(o_n, unroll_full=True):
        for x_p_i in cutlass.range(2, unroll_full=True):
            for q_i in cutlass.range(2, unroll_full=True):
                y[o_i, x_p_i, q_i] = Float16(acc[x_p_i, q_i, o_i] + bias[o_i])
    cute.arch.fence_proxy("async.shared", space="cta")
    cute.arch.sync_threads()
    for o_i in cutlass.range(o_n, unroll_full=True):
        for x_p_i in cutlass.range(2, unroll_full=True):
            for q_i in cutlass.range(2, unroll_full=True):
                stored_tile_28[x_p_axis_2((thread, x_p_i)), o_axis((thread, o_i)), q_axis_2((thread, q_i))] = Float16(
                    y[o_i, x_p_i, q_i],
                )
    cute.arch.fence_proxy("async.shared", space="cta")
    cute.arch.sync_threads()
    part_21 = cute.make_rmem_tensor(
        cute.make_layout((4, o_n2, 4), stride=(o_n2 * 4, 4, 1)),
        Float16,
    )
    for x_p_i in cutlass.range(4, unroll_full=True):
        for o_i in cutlass.range(o_n2, unroll_full=True):
            for q_i in cutlass.range(0, 4, 4, unroll_full=True):
                copy_run(
                    vector(stored_tile_28, (x_p_axis_3((thread, x_p_i)), o_axis_2((thread, o_i)), q_axis_3((thread, q_i))), 4),
                    vector(part_21, (x_p_i, o_i, q_i), 4),
                )
    offs_x_p_3 = cute.make_rmem_tensor(4, Int32)
    for x_p_i in cutlass.range(4, unroll_full=True):
        offs_x_p_3[x_p_i] = Int32(x_p_at + x_p_axis_3((thread, x_p_i)))
    mask_x_p_3 = cute.make_rmem_tensor(4, Boolean)
    for x_p_i in cutlass.range(4, unroll_full=True):
        mask_x_p_3[x_p_i] = Boolean((offs_x_p_3[x_p_i] < H) | EVEN_X_P)
    offs_o_2 = cute.make_rmem_tensor(o_n2, Int32)
    for o_i in cutlass.range(o_n2, unroll_full=True):
        offs_o_2[o_i] = Int32(o_axis_2((thread, o_i)))
    mask_o_2 = cute.make_rmem_tensor(o_n2, Boolean)
    for o_i in cutlass.range(o_n2, unroll_full=True):
        mask_o_2[o_i] = Boolean((offs_o_2[o_i] < O) | EVEN_O)
    offs_q_3 = cute.make_rmem_tensor(4, Int32)
    for q_i in cutlass.range(4, unroll_full=True):
        offs_q_3[q_i] = Int32(q_at + q_axis_3((thread, q_i)))
    mask_q_3 = cute.make_rmem_tensor(4, Boolean)
    for q_i in cutlass.range(4, unroll_full=True):
        mask_q_3[q_i] = Boolean((offs_q_3[q_i] < W) | EVEN_Q)
    for x_p_i in cutlass.range(4, unroll_full=True):
        for o_i in cutlass.range(o_n2, unroll_full=True):
            for q_i in cutlass.range(0, 4, wide(4, ALIGNED_Y), unroll_full=True):
                store(
                    y_ptr,
                    x_b_at * O * H * W + offs_o_2[o_i] * H * W + offs_x_p_3[x_p_i] * W + offs_q_3[q_i],
                    vector(part_21, (x_p_i, o_i, q_i), wide(4, ALIGNED_Y)),
                    mask_o_2[o_i] & mask_x_p_3[x_p_i] & mask_q_3[q_i],
                )
