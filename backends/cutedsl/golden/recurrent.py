"""rnn: One layer of a plain recurrent network, from a state of zeros.

Generated from spec 17bd5e140578b3fd and schedule 33c7af1e7fbc7b16.
"""

import cutlass
import cutlass.cute as cute
from cutlass import BFloat16, Boolean, Float16, Float32, Float64, Int8, Int16, Int32, Int64
from cutlass import Uint8, const_expr
from cutlass.cute.nvgpu import warpgroup

from backends.cutedsl.kernel import *

# What a build sets; these are the values at T = 16, B = 8, I = 64, H = 64.
J_WIDTH = 64
EVEN_J = True
X_I_2_WIDTH = 64
EVEN_X_I_2 = True
ALIGNED_WI = True
ALIGNED_X = True
K_WIDTH = 64
EVEN_K = True
ALIGNED_WH = True
ALIGNED_H = True
J_WIDTH_1 = 64
EVEN_J_1 = True


# gx[t, x_b, j] = sum(x[t, x_b, x_i_2] * wi[j, x_i_2], x_i_2)
@cute.kernel
def rnn_0(
    x_ptr: cute.Pointer,
    wi_ptr: cute.Pointer,
    gx_ptr: cute.Pointer,
    B: Int32,
    I: Int32,
    H: Int32,
):
    j_n = 1 * cute.ceil_div(J_WIDTH, 8)
    x_i_2_n = 4 * cute.ceil_div(X_I_2_WIDTH, 64)
    j_axis = cute.make_layout(((16, 8), j_n // 1), stride=((0, 1), 8))
    x_i_2_axis = cute.make_layout(((16, 8), (4, x_i_2_n // 4)), stride=((4, 0), (1, 64)))
    thread = cute.arch.thread_idx()[0]
    tile = cute.arch.block_idx()[0]
    offs_j = cute.make_rmem_tensor(j_n, Int32)
    for j_i in cutlass.range(j_n, unroll_full=True):
        offs_j[j_i] = Int32(j_axis((thread, j_i)))
    mask_j = cute.make_rmem_tensor(j_n, Boolean)
    for j_i in cutlass.range(j_n, unroll_full=True):
        mask_j[j_i] = Boolean((offs_j[j_i] < H) | EVEN_J)
    offs_x_i_2 = cute.make_rmem_tensor(x_i_2_n, Int32)
    for x_i_2_i in cutlass.range(x_i_2_n, unroll_full=True):
        offs_x_i_2[x_i_2_i] = Int32(x_i_2_axis((thread, x_i_2_i)))
    mask_x_i_2 = cute.make_rmem_tensor(x_i_2_n, Boolean)
    for x_i_2_i in cutlass.range(x_i_2_n, unroll_full=True):
        mask_x_i_2[x_i_2_i] = Boolean((offs_x_i_2[x_i_2_i] < I) | EVEN_X_I_2)
    wi = cute.make_rmem_tensor(cute.make_layout((j_n, x_i_2_n), stride=(x_i_2_n, 1)), Float32)
    for j_i in cutlass.range(j_n, unroll_full=True):
        for x_i_2_i in cutlass.range(0, x_i_2_n, wide(4, ALIGNED_WI), unroll_full=True):
            load(
                vector(wi, (j_i, x_i_2_i), wide(4, ALIGNED_WI)),
                wi_ptr,
                offs_j[j_i] * I + offs_x_i_2[x_i_2_i],
                mask_j[j_i] & mask_x_i_2[x_i_2_i],
                0.0,
            )
    tiles_x_b = Int32(B)
    t_at = Int32(tile // tiles_x_b)
    x_b_at = Int32(tile % tiles_x_b)
    x = cute.make_rmem_tensor(x_i_2_n, Float32)
    for x_i_2_i in cutlass.range(0, x_i_2_n, wide(4, ALIGNED_X), unroll_full=True):
        load(
            vector(x, x_i_2_i, wide(4, ALIGNED_X)),
            x_ptr,
            t_at * B * I + x_b_at * I + offs_x_i_2[x_i_2_i],
            mask_x_i_2[x_i_2_i],
            0.0,
        )
    gx_term = cute.make_rmem_tensor(cute.make_layout((j_n, x_i_2_n), stride=(x_i_2_n, 1)), Float32)
    for j_i in cutlass.range(j_n, unroll_full=True):
        for x_i_2_i in cutlass.range(x_i_2_n, unroll_full=True):
            gx_term[j_i, x_i_2_i] = Float32(x[x_i_2_i] * wi[j_i, x_i_2_i])
    gx = cute.make_rmem_tensor(j_n, Float32)
    for j_i in cutlass.range(j_n, unroll_full=True):
        gx[j_i] = Float32(0)
        for x_i_2_i in cutlass.range(x_i_2_n, unroll_full=True):
            gx[j_i] = Float32(gx[j_i] + gx_term[j_i, x_i_2_i])
    for distance in cutlass.range_constexpr(4):
        for j_i in cutlass.range(j_n, unroll_full=True):
            gx[j_i] = Float32(gx[j_i] + shuffle_xor(gx[j_i], 1 << distance))
    if (thread & 15) == 0:
        for j_i in cutlass.range(j_n, unroll_full=True):
            put(gx_ptr, t_at * B * H + x_b_at * H + offs_j[j_i], gx[j_i], mask_j[j_i])


# x_a[t, x_b, j] = sum(pad(h[t - 1, x_b, k], 0.0) * wh[j, k], k)
@cute.kernel
def rnn_1(
    wh_ptr: cute.Pointer,
    x_a_ptr: cute.Pointer,
    h_ptr: cute.Pointer,
    T: Int32,
    B: Int32,
    H: Int32,
    t_at: Int32,
):
    j_n = 1 * cute.ceil_div(J_WIDTH, 8)
    k_n = 4 * cute.ceil_div(K_WIDTH, 64)
    j_axis = cute.make_layout(((16, 8), j_n // 1), stride=((0, 1), 8))
    k_axis = cute.make_layout(((16, 8), (4, k_n // 4)), stride=((4, 0), (1, 64)))
    thread = cute.arch.thread_idx()[0]
    tile = cute.arch.block_idx()[0]
    offs_j = cute.make_rmem_tensor(j_n, Int32)
    for j_i in cutlass.range(j_n, unroll_full=True):
        offs_j[j_i] = Int32(j_axis((thread, j_i)))
    mask_j = cute.make_rmem_tensor(j_n, Boolean)
    for j_i in cutlass.range(j_n, unroll_full=True):
        mask_j[j_i] = Boolean((offs_j[j_i] < H) | EVEN_J)
    offs_k = cute.make_rmem_tensor(k_n, Int32)
    for k_i in cutlass.range(k_n, unroll_full=True):
        offs_k[k_i] = Int32(k_axis((thread, k_i)))
    mask_k = cute.make_rmem_tensor(k_n, Boolean)
    for k_i in cutlass.range(k_n, unroll_full=True):
        mask_k[k_i] = Boolean((offs_k[k_i] < H) | EVEN_K)
    wh = cute.make_rmem_tensor(cute.make_layout((j_n, k_n), stride=(k_n, 1)), Float32)
    for j_i in cutlass.range(j_n, unroll_full=True):
        for k_i in cutlass.range(0, k_n, wide(4, ALIGNED_WH), unroll_full=True):
            load(
                vector(wh, (j_i, k_i), wide(4, ALIGNED_WH)),
                wh_ptr,
                offs_j[j_i] * H + offs_k[k_i],
                mask_j[j_i] & mask_k[k_i],
                0.0,
            )
    x_b_at = Int32(tile)
    h = cute.make_rmem_tensor(k_n, Float32)
    for k_i in cutlass.range(0, k_n, wide(4, ALIGNED_H), unroll_full=True):
        load(
            vector(h, k_i, wide(4, ALIGNED_H)),
            h_ptr,
            (t_at - 1) * B * H + x_b_at * H + offs_k[k_i],
            mask_k[k_i] & (t_at - 1 >= 0) & (t_at - 1 < T),
            0.0,
        )
    a_term = cute.make_rmem_tensor(cute.make_layout((j_n, k_n), stride=(k_n, 1)), Float32)
    for j_i in cutlass.range(j_n, unroll_full=True):
        for k_i in cutlass.range(k_n, unroll_full=True):
            a_term[j_i, k_i] = Float32(h[k_i] * wh[j_i, k_i])
    x_a = cute.make_rmem_tensor(j_n, Float32)
    for j_i in cutlass.range(j_n, unroll_full=True):
        x_a[j_i] = Float32(0)
        for k_i in cutlass.range(k_n, unroll_full=True):
            x_a[j_i] = Float32(x_a[j_i] + a_term[j_i, k_i])
    for distance in cutlass.range_constexpr(4):
        for j_i in cutlass.range(j_n, unroll_full=True):
            x_a[j_i] = Float32(x_a[j_i] + shuffle_xor(x_a[j_i], 1 << distance))
    if (thread & 15) == 0:
        for j_i in cutlass.range(j_n, unroll_full=True):
            put(x_a_ptr, t_at * B * H + x_b_at * H + offs_j[j_i], x_a[j_i], mask_j[j_i])


# h[t, x_b, j] = tanh(x_a[t, x_b, j] + gx[t, x_b, j] + bias[j])
@cute.kernel
def rnn_2(
    bias_ptr: cute.Pointer,
    x_a_ptr: cute.Pointer,
    gx_ptr: cute.Pointer,
    h_ptr: cute.Pointer,
    B: Int32,
    H: Int32,
    t_at: Int32,
):
    j_n = 1 * cute.ceil_div(J_WIDTH_1, 64)
    j_axis = cute.make_layout(((64, 2), j_n // 1), stride=((1, 0), 64))
    thread = cute.arch.thread_idx()[0]
    tile = cute.arch.block_idx()[0]
    offs_j = cute.make_rmem_tensor(j_n, Int32)
    for j_i in cutlass.range(j_n, unroll_full=True):
        offs_j[j_i] = Int32(j_axis((thread, j_i)))
    mask_j = cute.make_rmem_tensor(j_n, Boolean)
    for j_i in cutlass.range(j_n, unroll_full=True):
        mask_j[j_i] = Boolean((offs_j[j_i] < H) | EVEN_J_1)
    bias = cute.make_rmem_tensor(j_n, Float32)
    for j_i in cutlass.range(j_n, unroll_full=True):
        bias[j_i] = Float32(get(bias_ptr, offs_j[j_i], mask_j[j_i], 0.0))
    x_b_at = Int32(tile)
    x_a = cute.make_rmem_tensor(j_n, Float32)
    for j_i in cutlass.range(j_n, unroll_full=True):
        x_a[j_i] = Float32(get(x_a_ptr, t_at * B * H + x_b_at * H + offs_j[j_i], mask_j[j_i], 0.0))
    gx = cute.make_rmem_tensor(j_n, Float32)
    for j_i in cutlass.range(j_n, unroll_full=True):
        gx[j_i] = Float32(get(gx_ptr, t_at * B * H + x_b_at * H + offs_j[j_i], mask_j[j_i], 0.0))
    h = cute.make_rmem_tensor(j_n, Float32)
    for j_i in cutlass.range(j_n, unroll_full=True):
        h[j_i] = Float32(fn.tanh((x_a[j_i] + gx[j_i]) + bias[j_i]))
    if (thread & 64) == 0:
        for j_i in cutlass.range(j_n, unroll_full=True):
            put(h_ptr, t_at * B * H + x_b_at * H + offs_j[j_i], h[j_i], mask_j[j_i])
