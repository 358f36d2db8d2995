"""dense: Multiply two matrices, add a bias to each row and apply GELU.

Generated from spec 3895edffde6ae393 and schedule 72416aa6135f4fd7.
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
BULK = True
ALIGNED_X = True
ALIGNED_W = True


# acc[m, n] = sum(f32(x[m, k]) * f32(w[k, n]), k)
# y[m, n] = gelu(acc[m, n] + f32(x_b[n]))
@cute.kernel
def dense_0(
    x_ptr: cute.Pointer,
    w_ptr: cute.Pointer,
    x_b_ptr: cute.Pointer,
    y_ptr: cute.Pointer,
    x_map: cute.CopyAtom,
    w_map: cute.CopyAtom,
    y_map: cute.CopyAtom,
    M: Int32,
    K: Int32,
    N: Int32,
):
    m_axis = cute.make_layout(128, stride=1)
    n_axis = cute.make_layout((128, 64), stride=(0, 1))
    m_axis_1 = cute.make_layout(((4, 32), 4), stride=((0, 1), 32))
    k_axis = cute.make_layout(((4, 32), 8), stride=((8, 0), 1))
    k_axis_1 = cute.make_layout(((8, 16), 2), stride=((0, 1), 16))
    n_axis_1 = cute.make_layout(((8, 16), 8), stride=((8, 0), 1))
    shared = cute.arch.get_dyn_smem(Uint8, 1024)
    x_tile = cute.make_tensor(
        cute.recast_ptr(shared + 0, cute.make_swizzle(2, 4, 3), BFloat16),
        cute.make_layout((3, 128, (32, cute.ceil_div(32, 32))), stride=(4096, 32, (1, 128 * 32))),
    )
    w_tile = cute.make_tensor(
        cute.recast_ptr(shared + 24576, cute.make_swizzle(3, 4, 3), BFloat16),
        cute.make_layout((3, 32, (64, cute.ceil_div(64, 64))), stride=(2048, 64, (1, 32 * 64))),
    )
    stored_tile_2 = cute.make_tensor(
        cute.recast_ptr(shared + 36864, cute.make_swizzle(3, 4, 3), BFloat16),
        cute.make_layout((128, (64, cute.ceil_div(64, 64))), stride=(64, (1, 128 * 64))),
    )
    k_full_1 = cute.recast_ptr(shared + (53248), None, Int64)
    k_empty_1 = cute.recast_ptr(shared + (53272), None, Int64)
    done = cute.recast_ptr(shared + (53296), None, Int64)
    columns = take_columns(64)  # of tensor memory
    if cute.arch.thread_idx()[0] == 0:
        init_signals(k_full_1, 3, where(BULK, 1, 128))
        init_signals(k_empty_1, 3, 4)
        init_signals(done, 8, 1)
    cute.arch.sync_threads()
    if cute.arch.thread_idx()[0] >= 128:  # the threads that fill shared memory
        thread = cute.arch.thread_idx()[0] - 128
        k_write_1 = Int32(0)
        k_write_parity_1 = Int32(1)
        for tile in range(cute.arch.block_idx()[0], cute.ceil_div(M, 128) * cute.ceil_div(N, 64), cute.arch.grid_dim()[0]):
            tiles_m = Int32(cute.ceil_div(M, 128))
            tiles_n = Int32(cute.ceil_div(N, 64))
            group_start = Int32(tile // (8 * tiles_n) * 8)
            group_size = Int32(fn.smaller(tiles_m - group_start, 8))
            in_group = Int32(tile % (8 * tiles_n))
            m_at = Int32((group_start + in_group % group_size) * 128)
            n_at = Int32(in_group // group_size * 64)
            for k_at in range(0, K, 32):
                cute.arch.mbarrier_wait(k_empty_1 + k_write_1, k_write_parity_1)
                if const_expr(BULK):
                    if thread == 0:
                        cute.arch.mbarrier_arrive_and_expect_tx(k_full_1 + k_write_1, 4096 * 2 + 2048 * 2)
                        load_box(
                            x_tile.iterator + cute.crd2idx((k_write_1, 0, 0), x_tile.layout),
                            x_map,
                            (k_at, m_at),
                            k_full_1 + k_write_1,
                        )
                        load_box(
                            w_tile.iterator + cute.crd2idx((k_write_1, 0, 0), w_tile.layout),
                            w_map,
                            (n_at, k_at),
                            k_full_1 + k_write_1,
                        )
                else:
                    offs_m_1 = cute.make_rmem_tensor(4, Int32)
                    for m_i in cutlass.range(4, unroll_full=True):
                        offs_m_1[m_i] = Int32(m_at + m_axis_1((thread, m_i)))
                    mask_m_1 = cute.make_rmem_tensor(4, Boolean)
                    for m_i in cutlass.range(4, unroll_full=True):
                        mask_m_1[m_i] = Boolean((offs_m_1[m_i] < M) | EVEN_M)
                    offs_k = cute.make_rmem_tensor(8, Int32)
                    for k_i in cutlass.range(8, unroll_full=True):
                        offs_k[k_i] = Int32(k_at + k_axis((thread, k_i)))
                    mask_k = cute.make_rmem_tensor(8, Boolean)
                    for k_i in cutlass.range(8, unroll_full=True):
                        mask_k[k_i] = Boolean((offs_k[k_i] < K) | EVEN_K)
                    for m_i in cutlass.range(4, unroll_full=True):
                        for k_i in cutlass.range(0, 8, wide(8, ALIGNED_X), unroll_full=True):
                            copy_async(
                                vector(x_tile, (k_write_1, m_axis_1((thread, m_i)), k_axis((thread, k_i))), wide(8, ALIGNED_X)),
                                x_ptr,
                                offs_m_1[m_i] * K + offs_k[k_i],
                                mask_m_1[m_i] & mask_k[k_i],
                            )
                    offs_k_1 = cute.make_rmem_tensor(2, Int32)
                    for k_i in cutlass.range(2, unroll_full=True):
                        offs_k_1[k_i] = Int32(k_at + k_axis_1((thread, k_i)))
                    mask_k_1 = cute.make_rmem_tensor(2, Boolean)
                    for k_i in cutlass.range(2, unroll_full=True):
                        mask_k_1[k_i] = Boolean((offs_k_1[k_i] < K) | EVEN_K)
                    offs_n_1 = cute.make_rmem_tensor(8, Int32)
                    for n_i in cutlass.range(8, unroll_full=True):
                        offs_n_1[n_i] = Int32(n_at + n_axis_1((thread, n_i)))
                    mask_n_1 = cute.make_rmem_tensor(8, Boolean)
                    for n_i in cutlass.range(8, unroll_full=True):
                        mask_n_1[n_i] = Boolean((offs_n_1[n_i] < N) | EVEN_N)
                    for k_i in cutlass.range(2, unroll_full=True):
                        for n_i in cutlass.range(0, 8, wide(8, ALIGNED_W), unroll_full=True):
                            copy_async(
                                vector(w_tile, (k_write_1, k_axis_1((thread, k_i)), n_axis_1((thread, n_i))), wide(8, ALIGNED_W)),
                                w_ptr,
                                offs_k_1[k_i] * N + offs_n_1[n_i],
                                mask_k_1[k_i] & mask_n_1[n_i],
                            )
                    cute.arch.cp_async_commit_group()
                    cute.arch.cp_async_wait_group(0)
                    cute.arch.fence_proxy("async.shared", space="cta")
                    cute.arch.mbarrier_arrive(k_full_1 + k_write_1)
                k_write_parity_1 = Int32(
                    where(k_write_1 == 2, 1 - k_write_parity_1, k_write_parity_1),
                )
                k_write_1 = Int32(where(k_write_1 == 2, 0, k_write_1 + 1))
    else:
        thread = cute.arch.thread_idx()[0]
        issued = Int32(15)
        k_read_1 = Int32(0)
        k_read_parity_1 = Int32(0)
        for tile in range(cute.arch.block_idx()[0], cute.ceil_div(M, 128) * cute.ceil_div(N, 64), cute.arch.grid_dim()[0]):
            tiles_m = Int32(cute.ceil_div(M, 128))
            tiles_n = Int32(cute.ceil_div(N, 64))
            group_start = Int32(tile // (8 * tiles_n) * 8)
            group_size = Int32(fn.smaller(tiles_m - group_start, 8))
            in_group = Int32(tile % (8 * tiles_n))
            m_at = Int32((group_start + in_group % group_size) * 128)
            n_at = Int32(in_group // group_size * 64)
            offs_m = Int32(m_at + m_axis(thread))
            mask_m = Boolean((offs_m < M) | EVEN_M)
            offs_n = cute.make_rmem_tensor(64, Int32)
            for n_i in cutlass.range(64, unroll_full=True):
                offs_n[n_i] = Int32(n_at + n_axis((thread, n_i)))
            mask_n = cute.make_rmem_tensor(64, Boolean)
            for n_i in cutlass.range(64, unroll_full=True):
                mask_n[n_i] = Boolean((offs_n[n_i] < N) | EVEN_N)
            acc_begun = Int32(0)
            assume(K > 0)
            for k_at in range(0, K, 32):
                cute.arch.mbarrier_wait(k_full_1 + k_read_1, k_read_parity_1)
                issued = Int32(issued + 1)
                if thread // 32 % 4 == 0:  # a warp of each four
                    for n_i in cutlass.range_constexpr(0, 64, 64):
                        for k_from in cutlass.range_constexpr(0, 32, 16):
                            tensor_mma(
                                columns + n_i,
                                matrix(x_tile, (k_read_1, 0, k_from), (128, 16), True, 32, 128),
                                matrix(w_tile, (k_read_1, k_from, n_i), (64, 16), False, 64, 32),
                                (128, 64, 16),
                                where(k_from > 0, True, acc_begun == 1),
                            )
                    signal_matmuls(done + issued % 8)
                cute.arch.mbarrier_wait(done + (issued - 1) % 8, (issued - 1) // 8 % 2)
                acc_begun = Int32(1)
                if k_at > 0:
                    arrive_warp(k_empty_1 + where(k_read_1 == 0, 2, k_read_1 - 1))
                k_read_parity_1 = Int32(where(k_read_1 == 2, 1 - k_read_parity_1, k_read_parity_1))
                k_read_1 = Int32(where(k_read_1 == 2, 0, k_read_1 + 1))
            acc = cute.make_rmem_tensor(64, Float32)
            cute.arch.mbarrier_wait(done + issued % 8, issued // 8 % 2)
            load_columns(columns, acc)
            cute.arch.fence_proxy("async.shared", space="cta")
            cute.arch.barrier(barrier_id=1, number_of_threads=128)
            arrive_warp(k_empty_1 + where(k_read_1 == 0, 2, k_read_1 - 1))
            x_b = cute.make_rmem_tensor(64, BFloat16)
            for n_i in cutlass.range(0, 64, wide(8, ALIGNED_W), unroll_full=True):
                load(vector(x_b, n_i, wide(8, ALIGNED_W)), x_b_ptr, offs_n[n_i], mask_n[n_i], 0.0)
            y = cute.make_rmem_tensor(64, BFloat16)
            for n_i in cutlass.range(64, unroll_full=True):
                y[n_i] = BFloat16(fn.short_gelu(acc[n_i] + Float32(x_b[n_i])))
            if const_expr(BULK):
                for n_i in cutlass.range(0, 64, 8, unroll_full=True):
                    copy_run(
                        vector(y, n_i, 8),
                        vector(stored_tile_2, (m_axis(thread), n_axis((thread, n_i))), 8),
                    )
                cute.arch.fence_proxy("async.shared", space="cta")
                cute.arch.barrier(barrier_id=1, number_of_threads=128)
                if thread == 0:
                    store_box(
                        y_map,
                        stored_tile_2.iterator + cute.crd2idx((0, 0), stored_tile_2.layout),
                        (n_at, m_at),
                    )
                    cute.arch.cp_async_bulk_commit_group()
                    cute.arch.cp_async_bulk_wait_group(0, read=True)
            else:
                for n_i in cutlass.range(0, 64, wide(8, ALIGNED_W), unroll_full=True):
                    store(
                        y_ptr,
                        offs_m * N + offs_n[n_i],
                        vector(y, n_i, wide(8, ALIGNED_W)),
                        mask_m & mask_n[n_i],
                    )
        give_columns_back(columns, 64)
