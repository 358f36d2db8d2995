"""dense: Multiply two matrices, add a bias to each row and apply GELU.

Generated from spec 3895edffde6ae393 and schedule 085cda41386ea1b0.
"""

import cutlass
import cutlass.cute as cute
from cutlass import BFloat16, Boolean, Float16, Float32, Float64, Int8, Int16, Int32, Int64
from cutlass import Uint8, const_expr
from cutlass.cute.nvgpu import warpgroup

from backends.cutedsl.kernel import *

# What a build sets; these are the values at M = 1024, K = 512, N = 512.
EVEN_M = True
EVEN_N = True
EVEN_K = True
ALIGNED_X = True
ALIGNED_W = True
ALIGNED_X_B = True


@cute.kernel
def dense_0(
    acc_flag_ptr: cute.Pointer,
):
    acc_flag_block_axis = cute.make_layout((128, 2), stride=(2, 1))
    thread = cute.arch.thread_idx()[0]
    tile = cute.arch.block_idx()[0]
    offs_acc_flag_block = cute.make_rmem_tensor(2, Int32)
    for acc_flag_block_i in cutlass.range(2, unroll_full=True):
        offs_acc_flag_block[acc_flag_block_i] = Int32(
            acc_flag_block_axis((thread, acc_flag_block_i)),
        )
    mask_acc_flag_block = cute.make_rmem_tensor(2, Boolean)
    for acc_flag_block_i in cutlass.range(2, unroll_full=True):
        mask_acc_flag_block[acc_flag_block_i] = Boolean(offs_acc_flag_block[acc_flag_block_i] < 133)
    acc_flag = cute.make_rmem_tensor(2, Int32)
    for acc_flag_block_i in cutlass.range(2, unroll_full=True):
        acc_flag[acc_flag_block_i] = Int32(fn.i32_from(0))
    for acc_flag_block_i in cutlass.range(2, unroll_full=True):
        put(
            acc_flag_ptr,
            offs_acc_flag_block[acc_flag_block_i],
            acc_flag[acc_flag_block_i],
            mask_acc_flag_block[acc_flag_block_i],
        )


# acc[m, n] = sum(f32(x[m, k]) * f32(w[k, n]), k)
# y[m, n] = gelu(acc[m, n] + f32(x_b[n]))
@cute.kernel
def dense_1(
    x_ptr: cute.Pointer,
    w_ptr: cute.Pointer,
    x_b_ptr: cute.Pointer,
    acc_partial_ptr: cute.Pointer,
    acc_flag_ptr: cute.Pointer,
    y_ptr: cute.Pointer,
    M: Int32,
    K: Int32,
    N: Int32,
):
    m_axis = cute.make_layout(((4, 8, 4), 2), stride=((0, 1, 16), 8))
    n_axis = cute.make_layout(((4, 32), (2, 8)), stride=((2, 0), (1, 8)))
    m_axis_1 = cute.make_layout(((4, 32), 2), stride=((0, 1), 32))
    n_axis_1 = cute.make_layout(((8, 16), 8), stride=((8, 0), 1))
    k_axis = cute.make_layout(((4, 32), 8), stride=((8, 0), 1))
    k_axis_1 = cute.make_layout(((8, 16), 2), stride=((0, 1), 16))
    m_axis_2 = cute.make_layout(((8, 16), 4), stride=((0, 1), 16))
    shared = cute.arch.get_dyn_smem(Uint8, 1024)
    x_tile = cute.make_tensor(
        cute.recast_ptr(shared + 0, cute.make_swizzle(2, 4, 3), BFloat16),
        cute.make_layout((3, 64, (32, cute.ceil_div(32, 32))), stride=(2048, 32, (1, 64 * 32))),
    )
    w_tile = cute.make_tensor(
        cute.recast_ptr(shared + 12288, cute.make_swizzle(3, 4, 3), BFloat16),
        cute.make_layout((3, 32, (64, cute.ceil_div(64, 64))), stride=(2048, 64, (1, 32 * 64))),
    )
    stored_tile_2 = cute.make_tensor(
        cute.recast_ptr(shared + 0, None, BFloat16),
        cute.make_layout((64, 64), stride=(72, 1)),
    )
    block = take_number(acc_flag_ptr, 132)
    thread = cute.arch.thread_idx()[0]
    k_iterations = Int32(cute.ceil_div(K, 32))
    share = Int32(
        cute.ceil_div(cute.ceil_div(M, 64) * cute.ceil_div(N, 64) * cute.ceil_div(K, 32), 132),
    )
    begin = Int32(block * share)
    end = Int32(
        fn.smaller(begin + share, cute.ceil_div(M, 64) * cute.ceil_div(N, 64) * cute.ceil_div(K, 32)),
    )
    # What other blocks wait for is in the last tile of a share.
    for number in range((end - 1) // k_iterations - begin // k_iterations + 1):
        tile = (end - 1) // k_iterations - number
        tiles_n = Int32(cute.ceil_div(N, 64))
        m_at = Int32(tile // tiles_n * 64)
        n_at = Int32(tile % tiles_n * 64)
        tile_begin = Int32(tile * k_iterations)
        k_low = Int32(fn.larger(begin - tile_begin, 0) * 32)
        k_high = Int32(fn.smaller(end - tile_begin, k_iterations) * 32)
        offs_m = cute.make_rmem_tensor(2, Int32)
        for m_i in cutlass.range(2, unroll_full=True):
            offs_m[m_i] = Int32(m_at + m_axis((thread, m_i)))
        offs_n = cute.make_rmem_tensor(16, Int32)
        for n_i in cutlass.range(16, unroll_full=True):
            offs_n[n_i] = Int32(n_at + n_axis((thread, n_i)))
        mask_n = cute.make_rmem_tensor(16, Boolean)
        for n_i in cutlass.range(16, unroll_full=True):
            mask_n[n_i] = Boolean((offs_n[n_i] < N) | EVEN_N)
        acc = cute.make_rmem_tensor(
            cute.make_layout(((2, 2 // 2), (2, 16 // 2)), stride=((2, 2 * 16), (1, 4))),
            Float32,
        )
        for m_i in cutlass.range(2, unroll_full=True):
            for n_i in cutlass.range(16, unroll_full=True):
                acc[m_i, n_i] = Float32(0.0)
        offs_m_1 = cute.make_rmem_tensor(2, Int32)
        for m_i in cutlass.range(2, unroll_full=True):
            offs_m_1[m_i] = Int32(m_at + m_axis_1((thread, m_i)))
        mask_m_1 = cute.make_rmem_tensor(2, Boolean)
        for m_i in cutlass.range(2, unroll_full=True):
            mask_m_1[m_i] = Boolean((offs_m_1[m_i] < M) | EVEN_M)
        offs_n_1 = cute.make_rmem_tensor(8, Int32)
        for n_i in cutlass.range(8, unroll_full=True):
            offs_n_1[n_i] = Int32(n_at + n_axis_1((thread, n_i)))
        mask_n_1 = cute.make_rmem_tensor(8, Boolean)
        for n_i in cutlass.range(8, unroll_full=True):
            mask_n_1[n_i] = Boolean((offs_n_1[n_i] < N) | EVEN_N)
        k_at_1 = Int32(k_low)
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.sync_threads()
        offs_k = cute.make_rmem_tensor(8, Int32)
        mask_k = cute.make_rmem_tensor(8, Boolean)
        offs_k_1 = cute.make_rmem_tensor(2, Int32)
        mask_k_1 = cute.make_rmem_tensor(2, Boolean)
        for k_stage_1 in cutlass.range_constexpr(0, 1, 1):
            if k_at_1 < k_high:
                for k_i in cutlass.range(8, unroll_full=True):
                    offs_k[k_i] = Int32(k_at_1 + k_axis((thread, k_i)))
                for k_i in cutlass.range(8, unroll_full=True):
                    mask_k[k_i] = Boolean((offs_k[k_i] < K) | EVEN_K)
                for m_i in cutlass.range(2, unroll_full=True):
                    for k_i in cutlass.range(0, 8, wide(8, ALIGNED_X), unroll_full=True):
                        copy_async(
                            vector(x_tile, (k_stage_1, m_axis_1((thread, m_i)), k_axis((thread, k_i))), wide(8, ALIGNED_X)),
                            x_ptr,
                            offs_m_1[m_i] * K + offs_k[k_i],
                            mask_m_1[m_i] & mask_k[k_i],
                        )
                for k_i in cutlass.range(2, unroll_full=True):
                    offs_k_1[k_i] = Int32(k_at_1 + k_axis_1((thread, k_i)))
                for k_i in cutlass.range(2, unroll_full=True):
                    mask_k_1[k_i] = Boolean((offs_k_1[k_i] < K) | EVEN_K)
                for k_i in cutlass.range(2, unroll_full=True):
                    for n_i in cutlass.range(0, 8, wide(8, ALIGNED_W), unroll_full=True):
                        copy_async(
                            vector(w_tile, (k_stage_1, k_axis_1((thread, k_i)), n_axis_1((thread, n_i))), wide(8, ALIGNED_W)),
                            w_ptr,
                            offs_k_1[k_i] * N + offs_n_1[n_i],
                            mask_k_1[k_i] & mask_n_1[n_i],
                        )
            cute.arch.cp_async_commit_group()
            k_at_1 = Int32(k_at_1 + 32)
        k_read_1 = Int32(0)
        k_write_1 = Int32(1)
        assume(k_high > k_low)
        for k_at in range(k_low, k_high, 32):
            cute.arch.cp_async_wait_group(0)
            cute.arch.fence_proxy("async.shared", space="cta")
            cute.arch.sync_threads()
            if k_at_1 < k_high:
                for k_i in cutlass.range(8, unroll_full=True):
                    offs_k[k_i] = Int32(k_at_1 + k_axis((thread, k_i)))
                for k_i in cutlass.range(8, unroll_full=True):
                    mask_k[k_i] = Boolean((offs_k[k_i] < K) | EVEN_K)
                for m_i in cutlass.range(2, unroll_full=True):
                    for k_i in cutlass.range(0, 8, wide(8, ALIGNED_X), unroll_full=True):
                        copy_async(
                            vector(x_tile, (k_write_1, m_axis_1((thread, m_i)), k_axis((thread, k_i))), wide(8, ALIGNED_X)),
                            x_ptr,
                            offs_m_1[m_i] * K + offs_k[k_i],
                            mask_m_1[m_i] & mask_k[k_i],
                        )
                for k_i in cutlass.range(2, unroll_full=True):
                    offs_k_1[k_i] = Int32(k_at_1 + k_axis_1((thread, k_i)))
                for k_i in cutlass.range(2, unroll_full=True):
                    mask_k_1[k_i] = Boolean((offs_k_1[k_i] < K) | EVEN_K)
                for k_i in cutlass.range(2, unroll_full=True):
                    for n_i in cutlass.range(0, 8, wide(8, ALIGNED_W), unroll_full=True):
                        copy_async(
                            vector(w_tile, (k_write_1, k_axis_1((thread, k_i)), n_axis_1((thread, n_i))), wide(8, ALIGNED_W)),
                            w_ptr,
                            offs_k_1[k_i] * N + offs_n_1[n_i],
                            mask_k_1[k_i] & mask_n_1[n_i],
                        )
            cute.arch.cp_async_commit_group()
            k_at_1 = Int32(k_at_1 + 32)
            k_write_1 = Int32(where(k_write_1 == 2, 0, k_write_1 + 1))
            warpgroup.fence()
            for m_i in cutlass.range_constexpr(0, 2, 2):
                for n_i in cutlass.range_constexpr(0, 16, 16):
                    for k_from in cutlass.range_constexpr(0, 32, 16):
                        warpgroup_mma(
                            result(acc, (m_i, n_i), 64),
                            matrix(x_tile, (k_read_1, m_i * 8, k_from), (64, 16), True, 32, 64),
                            matrix(w_tile, (k_read_1, k_from, n_i % 2 + n_i // 2 * 8), (64, 16), False, 64, 32),
                            (64, 64, 16),
                        )
            warpgroup.commit_group()
            warpgroup.wait_group(1)
            k_read_1 = Int32(where(k_read_1 == 2, 0, k_read_1 + 1))
        warpgroup.wait_group(0)
        if end - tile_begin >= k_iterations:
            for peer in range(tile_begin // share, block, 1):
                if thread == 0:
                    await_raised(acc_flag_ptr, peer)
                    cute.arch.fence_acq_rel_gpu()
                cute.arch.fence_proxy("async.shared", space="cta")
                cute.arch.sync_threads()
                acc_partial = cute.make_rmem_tensor(
                    cute.make_layout((2, 16), stride=(16, 1)),
                    Float32,
                )
                for m_i in cutlass.range(2, unroll_full=True):
                    for n_i in cutlass.range(0, 16, 2, unroll_full=True):
                        load(
                            vector(acc_partial, (m_i, n_i), 2),
                            acc_partial_ptr,
                            peer * 64 * 64 - (m_at * 64) - n_at + offs_m[m_i] * 64 + offs_n[n_i],
                        )
                for m_i in cutlass.range(2, unroll_full=True):
                    for n_i in cutlass.range(16, unroll_full=True):
                        acc[m_i, n_i] = Float32(acc[m_i, n_i] + acc_partial[m_i, n_i])
            x_b = cute.make_rmem_tensor(16, BFloat16)
            for n_i in cutlass.range(0, 16, wide(2, ALIGNED_X_B), unroll_full=True):
                load(vector(x_b, n_i, wide(2, ALIGNED_X_B)), x_b_ptr, offs_n[n_i], mask_n[n_i], 0.0)
            y = cute.make_rmem_tensor(cute.make_layout((2, 16), stride=(16, 1)), BFloat16)
            for m_i in cutlass.range(2, unroll_full=True):
                for n_i in cutlass.range(16, unroll_full=True):
                    y[m_i, n_i] = BFloat16(fn.short_gelu(acc[m_i, n_i] + Float32(x_b[n_i])))
            cute.arch.fence_proxy("async.shared", space="cta")
            cute.arch.sync_threads()
            for m_i in cutlass.range(2, unroll_full=True):
                for n_i in cutlass.range(0, 16, 2, unroll_full=True):
                    copy_run(
                        vector(y, (m_i, n_i), 2),
                        vector(stored_tile_2, (m_axis((thread, m_i)), n_axis((thread, n_i))), 2),
                    )
            cute.arch.fence_proxy("async.shared", space="cta")
            cute.arch.sync_threads()
            part_1 = cute.make_rmem_tensor(cute.make_layout((4, 8), stride=(8, 1)), BFloat16)
            for m_i in cutlass.range(4, unroll_full=True):
                for n_i in cutlass.range(0, 8, 8, unroll_full=True):
                    copy_run(
                        vector(stored_tile_2, (m_axis_2((thread, m_i)), n_axis_1((thread, n_i))), 8),
                        vector(part_1, (m_i, n_i), 8),
                    )
            offs_m_2 = cute.make_rmem_tensor(4, Int32)
            for m_i in cutlass.range(4, unroll_full=True):
                offs_m_2[m_i] = Int32(m_at + m_axis_2((thread, m_i)))
            mask_m_2 = cute.make_rmem_tensor(4, Boolean)
            for m_i in cutlass.range(4, unroll_full=True):
                mask_m_2[m_i] = Boolean((offs_m_2[m_i] < M) | EVEN_M)
            for n_i in cutlass.range(8, unroll_full=True):
                offs_n_1[n_i] = Int32(n_at + n_axis_1((thread, n_i)))
            for n_i in cutlass.range(8, unroll_full=True):
                mask_n_1[n_i] = Boolean((offs_n_1[n_i] < N) | EVEN_N)
            for m_i in cutlass.range(4, unroll_full=True):
                for n_i in cutlass.range(0, 8, wide(8, ALIGNED_W), unroll_full=True):
                    store(
                        y_ptr,
                        offs_m_2[m_i] * N + offs_n_1[n_i],
                        vector(part_1, (m_i, n_i), wide(8, ALIGNED_W)),
                        mask_m_2[m_i] & mask_n_1[n_i],
                    )
        else:
            for m_i in cutlass.range(2, unroll_full=True):
                for n_i in cutlass.range(0, 16, 2, unroll_full=True):
                    store(
                        acc_partial_ptr,
                        block * 64 * 64 - (m_at * 64) - n_at + offs_m[m_i] * 64 + offs_n[n_i],
                        vector(acc, (m_i, n_i), 2),
                    )
            cute.arch.fence_proxy("async.shared", space="cta")
            cute.arch.sync_threads()
            if thread == 0:
                cute.arch.fence_acq_rel_gpu()
                raise_flag(acc_flag_ptr, block)
