"""product: A product of f32, each operand split in two of tf32.

Generated from spec 4aa42b2db93ca105 and schedule 3aa4806e9c80c6b6.
"""

import cutlass
import cutlass.cute as cute
from cutlass import BFloat16, Boolean, Float16, Float32, Float64, Int8, Int16, Int32, Int64
from cutlass import Uint8, const_expr
from cutlass.cute.nvgpu import warpgroup

from backends.cutedsl.kernel import *

# What a build sets; these are the values at M = 256, K = 256, N = 256.
EVEN_M = True
EVEN_N = True
EVEN_K = True
ALIGNED_X = True
ALIGNED_W = True


# acc_ah[m, k] = tf32(x[m, k])
# acc_al[m, k] = tf32(x[m, k] - f32(acc_ah[m, k]))
# acc_bh[n, k] = tf32(w[k, n])
# acc_bl[n, k] = tf32(w[k, n] - f32(acc_bh[n, k]))
# acc[m, n] = sum(acc_al[m, k] * acc_bh[n, k] + acc_ah[m, k] * acc_bl[n, k] + acc_ah[m, k] *
#     acc_bh[n, k], k)
@cute.kernel
def product_0(
    x_ptr: cute.Pointer,
    w_ptr: cute.Pointer,
    acc_ptr: cute.Pointer,
    M: Int32,
    K: Int32,
    N: Int32,
):
    m_axis = cute.make_layout(((8, 16), 4), stride=((0, 1), 16))
    n_axis = cute.make_layout(((16, 8), 4), stride=((4, 0), 1))
    k_axis = cute.make_layout(((8, 16), 4), stride=((4, 0), 1))
    k_axis_1 = cute.make_layout(((16, 8), 4), stride=((0, 1), 8))
    k_axis_2 = cute.make_layout(((4, 32), (2, 4)), stride=((1, 0), (4, 8)))
    k_axis_3 = cute.make_layout(((32, 4), (4, 2)), stride=((0, 4), (1, 16)))
    m_axis_1 = cute.make_layout(((4, 8, 4), 2), stride=((0, 1, 16), 8))
    n_axis_1 = cute.make_layout(((32, 4), 2), stride=((1, 0), 32))
    n_axis_2 = cute.make_layout(((4, 32), (2, 8)), stride=((2, 0), (1, 8)))
    m_axis_2 = cute.make_layout(((16, 8), 8), stride=((0, 1), 8))
    shared = cute.arch.get_dyn_smem(Uint8, 1024)
    x_tile = cute.make_tensor(
        cute.recast_ptr(shared + 0, None, Float32),
        cute.make_layout((2, 64, 32), stride=(2304, 36, 1)),
    )
    w_tile = cute.make_tensor(
        cute.recast_ptr(shared + 18432, None, Float32),
        cute.make_layout((2, 32, 64), stride=(2176, 68, 1)),
    )
    acc_bh_tile = cute.make_tensor(
        cute.recast_ptr(shared + 35840, cute.make_swizzle(3, 4, 3), Float32),
        cute.make_layout((64, (32, cute.ceil_div(32, 32))), stride=(32, (1, 64 * 32))),
    )
    operand_tile_2 = cute.make_tensor(
        cute.recast_ptr(shared + 44032, cute.make_swizzle(3, 4, 3), Float32),
        cute.make_layout((64, (32, cute.ceil_div(32, 32))), stride=(32, (1, 64 * 32))),
    )
    stored_tile_4 = cute.make_tensor(
        cute.recast_ptr(shared + 0, None, Float32),
        cute.make_layout((64, 64), stride=(72, 1)),
    )
    thread = cute.arch.thread_idx()[0]
    tile = cute.arch.block_idx()[0]
    tiles_n = Int32(cute.ceil_div(N, 64))
    m_at = Int32(tile // tiles_n * 64)
    n_at = Int32(tile % tiles_n * 64)
    acc = cute.make_rmem_tensor(cute.make_layout((2, 16), stride=(16, 1)), Float32)
    for m_i in cutlass.range(2, unroll_full=True):
        for n_i in cutlass.range(16, unroll_full=True):
            acc[m_i, n_i] = Float32(0.0)
    offs_m_1 = cute.make_rmem_tensor(4, Int32)
    for m_i in cutlass.range(4, unroll_full=True):
        offs_m_1[m_i] = Int32(m_at + m_axis((thread, m_i)))
    mask_m_1 = cute.make_rmem_tensor(4, Boolean)
    for m_i in cutlass.range(4, unroll_full=True):
        mask_m_1[m_i] = Boolean((offs_m_1[m_i] < M) | EVEN_M)
    offs_n_2 = cute.make_rmem_tensor(4, Int32)
    for n_i in cutlass.range(4, unroll_full=True):
        offs_n_2[n_i] = Int32(n_at + n_axis((thread, n_i)))
    mask_n_2 = cute.make_rmem_tensor(4, Boolean)
    for n_i in cutlass.range(4, unroll_full=True):
        mask_n_2[n_i] = Boolean((offs_n_2[n_i] < N) | EVEN_N)
    k_at_1 = Int32(0)
    cute.arch.fence_proxy("async.shared", space="cta")
    cute.arch.sync_threads()
    offs_k_2 = cute.make_rmem_tensor(4, Int32)
    mask_k_2 = cute.make_rmem_tensor(4, Boolean)
    offs_k_3 = cute.make_rmem_tensor(4, Int32)
    mask_k_3 = cute.make_rmem_tensor(4, Boolean)
    for k_stage_1 in cutlass.range_constexpr(0, 1, 1):
        if k_at_1 < K:
            for k_i in cutlass.range(4, unroll_full=True):
                offs_k_2[k_i] = Int32(k_at_1 + k_axis((thread, k_i)))
            for k_i in cutlass.range(4, unroll_full=True):
                mask_k_2[k_i] = Boolean((offs_k_2[k_i] < K) | EVEN_K)
            for m_i in cutlass.range(4, unroll_full=True):
                for k_i in cutlass.range(0, 4, wide(4, ALIGNED_X), unroll_full=True):
                    copy_async(
                        vector(x_tile, (k_stage_1, m_axis((thread, m_i)), k_axis((thread, k_i))), wide(4, ALIGNED_X)),
                        x_ptr,
                        offs_m_1[m_i] * K + offs_k_2[k_i],
                        mask_m_1[m_i] & mask_k_2[k_i],
                    )
            for k_i in cutlass.range(4, unroll_full=True):
                offs_k_3[k_i] = Int32(k_at_1 + k_axis_1((thread, k_i)))
            for k_i in cutlass.range(4, unroll_full=True):
                mask_k_3[k_i] = Boolean((offs_k_3[k_i] < K) | EVEN_K)
            for k_i in cutlass.range(4, unroll_full=True):
                for n_i in cutlass.range(0, 4, wide(4, ALIGNED_W), unroll_full=True):
                    copy_async(
                        vector(w_tile, (k_stage_1, k_axis_1((thread, k_i)), n_axis((thread, n_i))), wide(4, ALIGNED_W)),
                        w_ptr,
                        offs_k_3[k_i] * N + offs_n_2[n_i],
                        mask_k_3[k_i] & mask_n_2[n_i],
                    )
        cute.arch.cp_async_commit_group()
        k_at_1 = Int32(k_at_1 + 32)
    k_read_1 = Int32(0)
    k_write_1 = Int32(1)
    assume(K > 0)
    for k_at in range(0, K, 32):
        cute.arch.cp_async_wait_group(0)
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.sync_threads()
        if k_at_1 < K:
            for k_i in cutlass.range(4, unroll_full=True):
                offs_k_2[k_i] = Int32(k_at_1 + k_axis((thread, k_i)))
            for k_i in cutlass.range(4, unroll_full=True):
                mask_k_2[k_i] = Boolean((offs_k_2[k_i] < K) | EVEN_K)
            for m_i in cutlass.range(4, unroll_full=True):
                for k_i in cutlass.range(0, 4, wide(4, ALIGNED_X), unroll_full=True):
                    copy_async(
                        vector(x_tile, (k_write_1, m_axis((thread, m_i)), k_axis((thread, k_i))), wide(4, ALIGNED_X)),
                        x_ptr,
                        offs_m_1[m_i] * K + offs_k_2[k_i],
                        mask_m_1[m_i] & mask_k_2[k_i],
                    )
            for k_i in cutlass.range(4, unroll_full=True):
                offs_k_3[k_i] = Int32(k_at_1 + k_axis_1((thread, k_i)))
            for k_i in cutlass.range(4, unroll_full=True):
                mask_k_3[k_i] = Boolean((offs_k_3[k_i] < K) | EVEN_K)
            for k_i in cutlass.range(4, unroll_full=True):
                for n_i in cutlass.range(0, 4, wide(4, ALIGNED_W), unroll_full=True):
                    copy_async(
                        vector(w_tile, (k_write_1, k_axis_1((thread, k_i)), n_axis((thread, n_i))), wide(4, ALIGNED_W)),
                        w_ptr,
                        offs_k_3[k_i] * N + offs_n_2[n_i],
                        mask_k_3[k_i] & mask_n_2[n_i],
                    )
        cute.arch.cp_async_commit_group()
        k_at_1 = Int32(k_at_1 + 32)
        k_write_1 = Int32(where(k_write_1 == 1, 0, k_write_1 + 1))
        offs_k = cute.make_rmem_tensor(8, Int32)
        for k_i in cutlass.range(8, unroll_full=True):
            offs_k[k_i] = Int32(k_at + k_axis_2((thread, k_i)))
        offs_k_1 = cute.make_rmem_tensor(8, Int32)
        for k_i in cutlass.range(8, unroll_full=True):
            offs_k_1[k_i] = Int32(k_at + k_axis_3((thread, k_i)))
        mask_k = cute.make_rmem_tensor(8, Boolean)
        for k_i in cutlass.range(8, unroll_full=True):
            mask_k[k_i] = Boolean((offs_k[k_i] < K) | EVEN_K)
        mask_k_1 = cute.make_rmem_tensor(8, Boolean)
        for k_i in cutlass.range(8, unroll_full=True):
            mask_k_1[k_i] = Boolean((offs_k_1[k_i] < K) | EVEN_K)
        x = cute.make_rmem_tensor(cute.make_layout((2, 8), stride=(8, 1)), Float32)
        for m_i in cutlass.range(2, unroll_full=True):
            for k_i in cutlass.range(8, unroll_full=True):
                x[m_i, k_i] = Float32(
                    x_tile[k_read_1, m_axis_1((thread, m_i)), k_axis_2((thread, k_i))],
                )
        acc_ah = cute.make_rmem_tensor(cute.make_layout((2, 8), stride=(8, 1)), Float32)
        for m_i in cutlass.range(2, unroll_full=True):
            for k_i in cutlass.range(8, unroll_full=True):
                acc_ah[m_i, k_i] = Float32(fn.round_tf32(x[m_i, k_i]))
        acc_al = cute.make_rmem_tensor(cute.make_layout((2, 8), stride=(8, 1)), Float32)
        for m_i in cutlass.range(2, unroll_full=True):
            for k_i in cutlass.range(8, unroll_full=True):
                acc_al[m_i, k_i] = Float32(fn.round_tf32(x[m_i, k_i] - acc_ah[m_i, k_i]))
        w = cute.make_rmem_tensor(cute.make_layout((8, 2), stride=(2, 1)), Float32)
        for k_i in cutlass.range(8, unroll_full=True):
            for n_i in cutlass.range(2, unroll_full=True):
                w[k_i, n_i] = Float32(
                    w_tile[k_read_1, k_axis_3((thread, k_i)), n_axis_1((thread, n_i))],
                )
        acc_bh = cute.make_rmem_tensor(cute.make_layout((8, 2), stride=(2, 1)), Float32)
        for k_i in cutlass.range(8, unroll_full=True):
            for n_i in cutlass.range(2, unroll_full=True):
                acc_bh[k_i, n_i] = Float32(fn.round_tf32(w[k_i, n_i]))
        acc_step = cute.make_rmem_tensor(
            cute.make_layout(((2, 2 // 2), (2, 16 // 2)), stride=((2, 2 * 16), (1, 4))),
            Float32,
        )
        for m_i in cutlass.range(2, unroll_full=True):
            for n_i in cutlass.range(16, unroll_full=True):
                acc_step[m_i, n_i] = Float32(0.0)
        part_1 = cute.make_rmem_tensor(cute.make_layout((2, 8), stride=(8, 1)), Float32)
        for m_i in cutlass.range(2, unroll_full=True):
            for k_i in cutlass.range(8, unroll_full=True):
                part_1[m_i, k_i] = Float32(where(mask_k[k_i], acc_al[m_i, k_i], 0.0))
        for k_i in cutlass.range(8, unroll_full=True):
            for n_i in cutlass.range(2, unroll_full=True):
                acc_bh_tile[n_axis_1((thread, n_i)), k_axis_3((thread, k_i))] = Float32(
                    acc_bh[k_i, n_i],
                )
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.sync_threads()
        warpgroup.fence()
        for m_i in cutlass.range_constexpr(0, 2, 2):
            for n_i in cutlass.range_constexpr(0, 16, 16):
                for k_from in cutlass.range_constexpr(0, 32, 8):
                    warpgroup_mma(
                        result(acc_step, (m_i, n_i), 64),
                        operand(part_1, (m_i, k_from // 8 * 2), [(0, 0), (1, 0), (0, 1), (1, 1)]),
                        matrix(acc_bh_tile, (n_i % 2 + n_i // 2 * 8, k_from), (64, 8), True, 32, 64),
                        (64, 64, 8),
                    )
        warpgroup.commit_group()
        warpgroup.wait_group(0)
        acc_bl = cute.make_rmem_tensor(cute.make_layout((8, 2), stride=(2, 1)), Float32)
        for k_i in cutlass.range(8, unroll_full=True):
            for n_i in cutlass.range(2, unroll_full=True):
                acc_bl[k_i, n_i] = Float32(fn.round_tf32(w[k_i, n_i] - acc_bh[k_i, n_i]))
        part_2 = cute.make_rmem_tensor(cute.make_layout((8, 2), stride=(2, 1)), Float32)
        for k_i in cutlass.range(8, unroll_full=True):
            for n_i in cutlass.range(2, unroll_full=True):
                part_2[k_i, n_i] = Float32(where(mask_k_1[k_i], acc_bl[k_i, n_i], 0.0))
        for k_i in cutlass.range(8, unroll_full=True):
            for n_i in cutlass.range(2, unroll_full=True):
                operand_tile_2[n_axis_1((thread, n_i)), k_axis_3((thread, k_i))] = Float32(
                    part_2[k_i, n_i],
                )
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.sync_threads()
        warpgroup.fence()
        for m_i in cutlass.range_constexpr(0, 2, 2):
            for n_i in cutlass.range_constexpr(0, 16, 16):
                for k_from in cutlass.range_constexpr(0, 32, 8):
                    warpgroup_mma(
                        result(acc_step, (m_i, n_i), 64),
                        operand(acc_ah, (m_i, k_from // 8 * 2), [(0, 0), (1, 0), (0, 1), (1, 1)]),
                        matrix(operand_tile_2, (n_i % 2 + n_i // 2 * 8, k_from), (64, 8), True, 32, 64),
                        (64, 64, 8),
                    )
        warpgroup.commit_group()
        warpgroup.wait_group(1)
        warpgroup.fence()
        for m_i in cutlass.range_constexpr(0, 2, 2):
            for n_i in cutlass.range_constexpr(0, 16, 16):
                for k_from in cutlass.range_constexpr(0, 32, 8):
                    warpgroup_mma(
                        result(acc_step, (m_i, n_i), 64),
                        operand(acc_ah, (m_i, k_from // 8 * 2), [(0, 0), (1, 0), (0, 1), (1, 1)]),
                        matrix(acc_bh_tile, (n_i % 2 + n_i // 2 * 8, k_from), (64, 8), True, 32, 64),
                        (64, 64, 8),
                    )
        warpgroup.commit_group()
        warpgroup.wait_group(0)
        for m_i in cutlass.range(2, unroll_full=True):
            for n_i in cutlass.range(16, unroll_full=True):
                acc[m_i, n_i] = Float32(acc[m_i, n_i] + acc_step[m_i, n_i])
        k_read_1 = Int32(where(k_read_1 == 1, 0, k_read_1 + 1))
    cute.arch.fence_proxy("async.shared", space="cta")
    cute.arch.sync_threads()
    for m_i in cutlass.range(2, unroll_full=True):
        for n_i in cutlass.range(0, 16, 2, unroll_full=True):
            copy_run(
                vector(acc, (m_i, n_i), 2),
                vector(stored_tile_4, (m_axis_1((thread, m_i)), n_axis_2((thread, n_i))), 2),
            )
    cute.arch.fence_proxy("async.shared", space="cta")
    cute.arch.sync_threads()
    part_3 = cute.make_rmem_tensor(cute.make_layout((8, 4), stride=(4, 1)), Float32)
    for m_i in cutlass.range(8, unroll_full=True):
        for n_i in cutlass.range(0, 4, 4, unroll_full=True):
            copy_run(
                vector(stored_tile_4, (m_axis_2((thread, m_i)), n_axis((thread, n_i))), 4),
                vector(part_3, (m_i, n_i), 4),
            )
    offs_m_2 = cute.make_rmem_tensor(8, Int32)
    for m_i in cutlass.range(8, unroll_full=True):
        offs_m_2[m_i] = Int32(m_at + m_axis_2((thread, m_i)))
    mask_m_2 = cute.make_rmem_tensor(8, Boolean)
    for m_i in cutlass.range(8, unroll_full=True):
        mask_m_2[m_i] = Boolean((offs_m_2[m_i] < M) | EVEN_M)
    for n_i in cutlass.range(4, unroll_full=True):
        offs_n_2[n_i] = Int32(n_at + n_axis((thread, n_i)))
    for n_i in cutlass.range(4, unroll_full=True):
        mask_n_2[n_i] = Boolean((offs_n_2[n_i] < N) | EVEN_N)
    for m_i in cutlass.range(8, unroll_full=True):
        for n_i in cutlass.range(0, 4, wide(4, ALIGNED_W), unroll_full=True):
            store(
                acc_ptr,
                offs_m_2[m_i] * N + offs_n_2[n_i],
                vector(part_3, (m_i, n_i), wide(4, ALIGNED_W)),
                mask_m_2[m_i] & mask_n_2[n_i],
            )
