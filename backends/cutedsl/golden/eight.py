"""eight: A product of 8-bit floats, the second operand by its columns, in two formats.

Generated from spec 44c4d61ff93c4989 and schedule 2265e2cd83ba3566.
"""

import cutlass
import cutlass.cute as cute
from cutlass import BFloat16, Boolean, Float16, Float32, Float64, Int8, Int16, Int32, Int64
from cutlass import Uint8, const_expr
from cutlass import Float8E4M3FN, Float8E5M2
from cutlass.cute.nvgpu import warpgroup

from backends.cutedsl.kernel import *

# What a build sets; these are the values at M = 128, K = 256, N = 128.
EVEN_M = True
EVEN_N = True
EVEN_K = True
ALIGNED_X = True
ALIGNED_W = True
ALIGNED_X_B = True
ALIGNED_Y = True


# acc[m, n] = sum(f32(x[m, k]) * f32(w[k, n]), k)
# y[m, n] = acc[m, n] + f32(x_b[n])
# z[m, n] = acc[m, n] * 0.125
@cute.kernel
def eight_0(
    x_ptr: cute.Pointer,
    w_ptr: cute.Pointer,
    x_b_ptr: cute.Pointer,
    y_ptr: cute.Pointer,
    z_ptr: cute.Pointer,
    M: Int32,
    K: Int32,
    N: Int32,
):
    n_axis = cute.make_layout(((4, 32), (2, 8)), stride=((2, 0), (1, 8)))
    m_axis = cute.make_layout(((4, 32), 2), stride=((0, 1), 32))
    n_axis_1 = cute.make_layout(((4, 32), 16), stride=((16, 0), 1))
    k_axis = cute.make_layout(((4, 32), 16), stride=((16, 0), 1))
    k_axis_1 = cute.make_layout(((4, 32), 2), stride=((0, 1), 32))
    k_axis_2 = cute.make_layout(((32, 4), 16), stride=((0, 16), 1))
    n_axis_2 = cute.make_layout(((32, 4), 2), stride=((1, 0), 32))
    m_axis_1 = cute.make_layout(((4, 8, 4), 2), stride=((0, 1, 16), 8))
    m_axis_2 = cute.make_layout(((8, 16), 4), stride=((0, 1), 16))
    n_axis_3 = cute.make_layout(((8, 16), 8), stride=((8, 0), 1))
    shared = cute.arch.get_dyn_smem(Uint8, 1024)
    x_tile = cute.make_tensor(
        cute.recast_ptr(shared + 0, cute.make_swizzle(2, 4, 3), Float8E4M3FN),
        cute.make_layout((2, 64, (64, cute.ceil_div(64, 64))), stride=(4096, 64, (1, 64 * 64))),
    )
    w_tile = cute.make_tensor(
        cute.recast_ptr(shared + 9216, None, Float8E4M3FN),
        cute.make_layout((2, 64, 64), stride=(6144, 96, 1)),
    )
    w_tile1 = cute.make_tensor(
        cute.recast_ptr(shared + 21504, cute.make_swizzle(2, 4, 3), Float8E4M3FN),
        cute.make_layout((64, (64, cute.ceil_div(64, 64))), stride=(64, (1, 64 * 64))),
    )
    stored_tile_3 = cute.make_tensor(
        cute.recast_ptr(shared + 0, None, BFloat16),
        cute.make_layout((64, 64), stride=(72, 1)),
    )
    stored_tile_4 = cute.make_tensor(
        cute.recast_ptr(shared + 0, None, Float8E5M2),
        cute.make_layout((64, 64), stride=(80, 1)),
    )
    thread = cute.arch.thread_idx()[0]
    tile = cute.arch.block_idx()[0]
    tiles_n = Int32(cute.ceil_div(N, 64))
    m_at = Int32(tile // tiles_n * 64)
    n_at = Int32(tile % tiles_n * 64)
    offs_n = cute.make_rmem_tensor(16, Int32)
    for n_i in cutlass.range(16, unroll_full=True):
        offs_n[n_i] = Int32(n_at + n_axis((thread, n_i)))
    mask_n = cute.make_rmem_tensor(16, Boolean)
    for n_i in cutlass.range(16, unroll_full=True):
        mask_n[n_i] = Boolean((offs_n[n_i] < N) | EVEN_N)
    acc = cute.make_rmem_tensor(cute.make_layout((2, 16), stride=(16, 1)), Float32)
    for m_i in cutlass.range(2, unroll_full=True):
        for n_i in cutlass.range(16, unroll_full=True):
            acc[m_i, n_i] = Float32(0.0)
    offs_m_1 = cute.make_rmem_tensor(2, Int32)
    for m_i in cutlass.range(2, unroll_full=True):
        offs_m_1[m_i] = Int32(m_at + m_axis((thread, m_i)))
    mask_m_1 = cute.make_rmem_tensor(2, Boolean)
    for m_i in cutlass.range(2, unroll_full=True):
        mask_m_1[m_i] = Boolean((offs_m_1[m_i] < M) | EVEN_M)
    offs_n_2 = cute.make_rmem_tensor(16, Int32)
    for n_i in cutlass.range(16, unroll_full=True):
        offs_n_2[n_i] = Int32(n_at + n_axis_1((thread, n_i)))
    mask_n_2 = cute.make_rmem_tensor(16, Boolean)
    for n_i in cutlass.range(16, unroll_full=True):
        mask_n_2[n_i] = Boolean((offs_n_2[n_i] < N) | EVEN_N)
    k_at_1 = Int32(0)
    cute.arch.fence_proxy("async.shared", space="cta")
    cute.arch.sync_threads()
    offs_k_1 = cute.make_rmem_tensor(16, Int32)
    mask_k_1 = cute.make_rmem_tensor(16, Boolean)
    offs_k_2 = cute.make_rmem_tensor(2, Int32)
    mask_k_2 = cute.make_rmem_tensor(2, Boolean)
    for k_stage_1 in cutlass.range_constexpr(0, 1, 1):
        if k_at_1 < K:
            for k_i in cutlass.range(16, unroll_full=True):
                offs_k_1[k_i] = Int32(k_at_1 + k_axis((thread, k_i)))
            for k_i in cutlass.range(16, unroll_full=True):
                mask_k_1[k_i] = Boolean((offs_k_1[k_i] < K) | EVEN_K)
            for m_i in cutlass.range(2, unroll_full=True):
                for k_i in cutlass.range(0, 16, wide(16, ALIGNED_X), unroll_full=True):
                    copy_async(
                        vector(x_tile, (k_stage_1, m_axis((thread, m_i)), k_axis((thread, k_i))), wide(16, ALIGNED_X)),
                        x_ptr,
                        offs_m_1[m_i] * K + offs_k_1[k_i],
                        mask_m_1[m_i] & mask_k_1[k_i],
                    )
            for k_i in cutlass.range(2, unroll_full=True):
                offs_k_2[k_i] = Int32(k_at_1 + k_axis_1((thread, k_i)))
            for k_i in cutlass.range(2, unroll_full=True):
                mask_k_2[k_i] = Boolean((offs_k_2[k_i] < K) | EVEN_K)
            for k_i in cutlass.range(2, unroll_full=True):
                for n_i in cutlass.range(0, 16, wide(16, ALIGNED_W), unroll_full=True):
                    copy_async(
                        vector(w_tile, (k_stage_1, k_axis_1((thread, k_i)), n_axis_1((thread, n_i))), wide(16, ALIGNED_W)),
                        w_ptr,
                        offs_k_2[k_i] * N + offs_n_2[n_i],
                        mask_k_2[k_i] & mask_n_2[n_i],
                    )
        cute.arch.cp_async_commit_group()
        k_at_1 = Int32(k_at_1 + 64)
    k_read_1 = Int32(0)
    k_write_1 = Int32(1)
    assume(K > 0)
    for k_at in range(0, K, 64):
        cute.arch.cp_async_wait_group(0)
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.sync_threads()
        if k_at_1 < K:
            for k_i in cutlass.range(16, unroll_full=True):
                offs_k_1[k_i] = Int32(k_at_1 + k_axis((thread, k_i)))
            for k_i in cutlass.range(16, unroll_full=True):
                mask_k_1[k_i] = Boolean((offs_k_1[k_i] < K) | EVEN_K)
            for m_i in cutlass.range(2, unroll_full=True):
                for k_i in cutlass.range(0, 16, wide(16, ALIGNED_X), unroll_full=True):
                    copy_async(
                        vector(x_tile, (k_write_1, m_axis((thread, m_i)), k_axis((thread, k_i))), wide(16, ALIGNED_X)),
                        x_ptr,
                        offs_m_1[m_i] * K + offs_k_1[k_i],
                        mask_m_1[m_i] & mask_k_1[k_i],
                    )
            for k_i in cutlass.range(2, unroll_full=True):
                offs_k_2[k_i] = Int32(k_at_1 + k_axis_1((thread, k_i)))
            for k_i in cutlass.range(2, unroll_full=True):
                mask_k_2[k_i] = Boolean((offs_k_2[k_i] < K) | EVEN_K)
            for k_i in cutlass.range(2, unroll_full=True):
                for n_i in cutlass.range(0, 16, wide(16, ALIGNED_W), unroll_full=True):
                    copy_async(
                        vector(w_tile, (k_write_1, k_axis_1((thread, k_i)), n_axis_1((thread, n_i))), wide(16, ALIGNED_W)),
                        w_ptr,
                        offs_k_2[k_i] * N + offs_n_2[n_i],
                        mask_k_2[k_i] & mask_n_2[n_i],
                    )
        cute.arch.cp_async_commit_group()
        k_at_1 = Int32(k_at_1 + 64)
        k_write_1 = Int32(where(k_write_1 == 1, 0, k_write_1 + 1))
        w = cute.make_rmem_tensor(cute.make_layout((16, 2), stride=(2, 1)), Float8E4M3FN)
        for k_i in cutlass.range(16, unroll_full=True):
            for n_i in cutlass.range(2, unroll_full=True):
                w[k_i, n_i] = Float8E4M3FN(
                    w_tile[k_read_1, k_axis_2((thread, k_i)), n_axis_2((thread, n_i))],
                )
        acc_step = cute.make_rmem_tensor(
            cute.make_layout(((2, 2 // 2), (2, 16 // 2)), stride=((2, 2 * 16), (1, 4))),
            Float32,
        )
        for m_i in cutlass.range(2, unroll_full=True):
            for n_i in cutlass.range(16, unroll_full=True):
                acc_step[m_i, n_i] = Float32(0.0)
        for k_i in cutlass.range(16, unroll_full=True):
            for n_i in cutlass.range(2, unroll_full=True):
                w_tile1[n_axis_2((thread, n_i)), k_axis_2((thread, k_i))] = Float8E4M3FN(
                    w[k_i, n_i],
                )
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.sync_threads()
        warpgroup.fence()
        for m_i in cutlass.range_constexpr(0, 2, 2):
            for n_i in cutlass.range_constexpr(0, 16, 16):
                for k_from in cutlass.range_constexpr(0, 64, 32):
                    warpgroup_mma(
                        result(acc_step, (m_i, n_i), 64),
                        matrix(x_tile, (k_read_1, m_i * 8, k_from), (64, 32), True, 64, 64),
                        matrix(w_tile1, (n_i % 2 + n_i // 2 * 8, k_from), (64, 32), True, 64, 64),
                        (64, 64, 32),
                    )
        warpgroup.commit_group()
        warpgroup.wait_group(0)
        for m_i in cutlass.range(2, unroll_full=True):
            for n_i in cutlass.range(16, unroll_full=True):
                acc[m_i, n_i] = Float32(acc[m_i, n_i] + acc_step[m_i, n_i])
        k_read_1 = Int32(where(k_read_1 == 1, 0, k_read_1 + 1))
    x_b = cute.make_rmem_tensor(16, Float8E5M2)
    for n_i in cutlass.range(0, 16, wide(2, ALIGNED_X_B), unroll_full=True):
        load(vector(x_b, n_i, wide(2, ALIGNED_X_B)), x_b_ptr, offs_n[n_i], mask_n[n_i], 0.0)
    y = cute.make_rmem_tensor(cute.make_layout((2, 16), stride=(16, 1)), BFloat16)
    for m_i in cutlass.range(2, unroll_full=True):
        for n_i in cutlass.range(16, unroll_full=True):
            y[m_i, n_i] = BFloat16(acc[m_i, n_i] + Float32(x_b[n_i]))
    cute.arch.fence_proxy("async.shared", space="cta")
    cute.arch.sync_threads()
    for m_i in cutlass.range(2, unroll_full=True):
        for n_i in cutlass.range(0, 16, 2, unroll_full=True):
            copy_run(
                vector(y, (m_i, n_i), 2),
                vector(stored_tile_3, (m_axis_1((thread, m_i)), n_axis((thread, n_i))), 2),
            )
    cute.arch.fence_proxy("async.shared", space="cta")
    cute.arch.sync_threads()
    part_1 = cute.make_rmem_tensor(cute.make_layout((4, 8), stride=(8, 1)), BFloat16)
    for m_i in cutlass.range(4, unroll_full=True):
        for n_i in cutlass.range(0, 8, 8, unroll_full=True):
            copy_run(
                vector(stored_tile_3, (m_axis_2((thread, m_i)), n_axis_3((thread, n_i))), 8),
                vector(part_1, (m_i, n_i), 8),
            )
    offs_m_2 = cute.make_rmem_tensor(4, Int32)
    for m_i in cutlass.range(4, unroll_full=True):
        offs_m_2[m_i] = Int32(m_at + m_axis_2((thread, m_i)))
    mask_m_2 = cute.make_rmem_tensor(4, Boolean)
    for m_i in cutlass.range(4, unroll_full=True):
        mask_m_2[m_i] = Boolean((offs_m_2[m_i] < M) | EVEN_M)
    offs_n_3 = cute.make_rmem_tensor(8, Int32)
    for n_i in cutlass.range(8, unroll_full=True):
        offs_n_3[n_i] = Int32(n_at + n_axis_3((thread, n_i)))
    mask_n_3 = cute.make_rmem_tensor(8, Boolean)
    for n_i in cutlass.range(8, unroll_full=True):
        mask_n_3[n_i] = Boolean((offs_n_3[n_i] < N) | EVEN_N)
    for m_i in cutlass.range(4, unroll_full=True):
        for n_i in cutlass.range(0, 8, wide(8, ALIGNED_Y), unroll_full=True):
            store(
                y_ptr,
                offs_m_2[m_i] * N + offs_n_3[n_i],
                vector(part_1, (m_i, n_i), wide(8, ALIGNED_Y)),
                mask_m_2[m_i] & mask_n_3[n_i],
            )
    z = cute.make_rmem_tensor(cute.make_layout((2, 16), stride=(16, 1)), Float8E5M2)
    for m_i in cutlass.range(2, unroll_full=True):
        for n_i in cutlass.range(16, unroll_full=True):
            z[m_i, n_i] = fn.f8e5m2_from(acc[m_i, n_i] * 0.125)
    cute.arch.fence_proxy("async.shared", space="cta")
    cute.arch.sync_threads()
    for m_i in cutlass.range(2, unroll_full=True):
        for n_i in cutlass.range(0, 16, 2, unroll_full=True):
            copy_run(
                vector(z, (m_i, n_i), 2),
                vector(stored_tile_4, (m_axis_1((thread, m_i)), n_axis((thread, n_i))), 2),
            )
    cute.arch.fence_proxy("async.shared", space="cta")
    cute.arch.sync_threads()
    part_2 = cute.make_rmem_tensor(cute.make_layout((2, 16), stride=(16, 1)), Float8E5M2)
    for m_i in cutlass.range(2, unroll_full=True):
        for n_i in cutlass.range(0, 16, 16, unroll_full=True):
            copy_run(
                vector(stored_tile_4, (m_axis((thread, m_i)), n_axis_1((thread, n_i))), 16),
                vector(part_2, (m_i, n_i), 16),
            )
    for m_i in cutlass.range(2, unroll_full=True):
        offs_m_1[m_i] = Int32(m_at + m_axis((thread, m_i)))
    for m_i in cutlass.range(2, unroll_full=True):
        mask_m_1[m_i] = Boolean((offs_m_1[m_i] < M) | EVEN_M)
    for n_i in cutlass.range(16, unroll_full=True):
        offs_n_2[n_i] = Int32(n_at + n_axis_1((thread, n_i)))
    for n_i in cutlass.range(16, unroll_full=True):
        mask_n_2[n_i] = Boolean((offs_n_2[n_i] < N) | EVEN_N)
    for m_i in cutlass.range(2, unroll_full=True):
        for n_i in cutlass.range(0, 16, wide(16, ALIGNED_W), unroll_full=True):
            store(
                z_ptr,
                offs_m_1[m_i] * N + offs_n_2[n_i],
                vector(part_2, (m_i, n_i), wide(16, ALIGNED_W)),
                mask_m_1[m_i] & mask_n_2[n_i],
            )
