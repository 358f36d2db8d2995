"""causal: Average values by a softmax over the keys up to each query's own place.

Generated from spec 36ace2157074c073 and schedule fbd406bcf06e72bd.
"""

import cutlass
import cutlass.cute as cute
from cutlass import BFloat16, Boolean, Float16, Float32, Float64, Int8, Int16, Int32, Int64
from cutlass import Uint8, const_expr
from cutlass.cute.nvgpu import warpgroup

from backends.cutedsl.kernel import *

# What a build sets; these are the values at H = 4, M = 256, N = 256, D = 64.
EVEN_M = True
EVEN_N = True
D_WIDTH = 64
EVEN_D = True
BULK = True
ALIGNED_Q = True
ALIGNED_K = True


# s[h, m, n] = sum(f32(q[h, m, d]) * f32(k[h, n, d]), d)
# x_a[h, m, n] = where(n <= m, s[h, m, n] * rsqrt(f32(D)), -inf)
# mx[h, m] = max(x_a[h, m, n], n)
# x_p[h, m, n] = exp(x_a[h, m, n] - mx[h, m])
# l[h, m] = sum(x_p[h, m, n], n)
# o[h, m, d] = sum(x_p[h, m, n] * f32(v[h, n, d]), n)
# y[h, m, d] = o[h, m, d] / l[h, m]
@cute.kernel
def causal_0(
    q_ptr: cute.Pointer,
    k_ptr: cute.Pointer,
    v_ptr: cute.Pointer,
    y_ptr: cute.Pointer,
    q_map: cute.CopyAtom,
    k_map: cute.CopyAtom,
    v_map: cute.CopyAtom,
    M: Int32,
    D: Int32,
    N: Int32,
):
    d_n = 8 * cute.ceil_div(D_WIDTH, 8)
    d_n1 = 8 * cute.ceil_div(D_WIDTH, 64)
    d_n2 = 4 * cute.ceil_div(D_WIDTH, 64)
    d_axis = cute.make_layout((128, (8, d_n // 8)), stride=(0, (1, 8)))
    m_axis = cute.make_layout(128, stride=1)
    n_axis = cute.make_layout((128, 32), stride=(0, 1))
    n_axis_1 = cute.make_layout(((8, 16), 2), stride=((0, 1), 16))
    d_axis_1 = cute.make_layout(((8, 16), (8, d_n1 // 8)), stride=((8, 0), (1, 64)))
    m_axis_1 = cute.make_layout(((16, 8), (4, 4)), stride=((0, 4), (1, 32)))
    n_axis_2 = cute.make_layout((128, 4), stride=(0, 1))
    d_axis_2 = cute.make_layout(((16, 8), (4, d_n2 // 4)), stride=((4, 0), (1, 64)))
    m_axis_2 = cute.make_layout(((8, 16), 8), stride=((0, 1), 16))
    shared = cute.arch.get_dyn_smem(Uint8, 1024)
    shared_3 = 19456 + cute.round_up(256 * D_WIDTH, 1024)
    shared_4 = shared_3 + cute.round_up(128 * D_WIDTH, 1024)
    shared_5 = shared_4 + cute.round_up(128 * D_WIDTH, 1024)
    shared_6 = shared_5 + cute.round_up(128 * (D_WIDTH + 4), 1024)
    shared_7 = shared_6 + cute.round_up(max(512 * D_WIDTH, 512 * D_WIDTH), 1024)
    q_tile = cute.make_tensor(
        cute.recast_ptr(shared + 19456, cute.make_swizzle(3, 4, 3), BFloat16),
        cute.make_layout((128, (64, cute.ceil_div(D_WIDTH, 64))), stride=(64, (1, 128 * 64))),
    )
    k_tile = cute.make_tensor(
        cute.recast_ptr(shared + shared_3, cute.make_swizzle(3, 4, 3), BFloat16),
        cute.make_layout((2, 32, (64, cute.ceil_div(D_WIDTH, 64))), stride=(32 * D_WIDTH, 64, (1, 32 * 64))),
    )
    v_tile = cute.make_tensor(
        cute.recast_ptr(shared + shared_4, cute.make_swizzle(3, 4, 3), BFloat16),
        cute.make_layout((2, 32, (64, cute.ceil_div(D_WIDTH, 64))), stride=(32 * D_WIDTH, 64, (1, 32 * 64))),
    )
    operand_tile_3 = cute.make_tensor(
        cute.recast_ptr(shared + 0, None, Float32),
        cute.make_layout((128, 32), stride=(36, 1)),
    )
    o_b_tile = cute.make_tensor(
        cute.recast_ptr(shared + shared_5, None, Float32),
        cute.make_layout((32, D_WIDTH), stride=((D_WIDTH + 4), 1)),
    )
    converted_tile_6 = cute.make_tensor(
        cute.recast_ptr(shared + shared_6, None, Float32),
        cute.make_layout((128, D_WIDTH), stride=(D_WIDTH, 1)),
    )
    converted_tile0_6 = cute.make_tensor(
        cute.recast_ptr(shared + shared_6, None, Float32),
        cute.make_layout((128, D_WIDTH), stride=(D_WIDTH, 1)),
    )
    q_full_1 = cute.recast_ptr(shared + (18432), None, Int64)
    q_empty_1 = cute.recast_ptr(shared + (18440), None, Int64)
    n_full_2 = cute.recast_ptr(shared + (18448), None, Int64)
    n_empty_2 = cute.recast_ptr(shared + (18464), None, Int64)
    done = cute.recast_ptr(shared + (18480), None, Int64)
    columns = take_columns(96)  # of tensor memory
    if cute.arch.thread_idx()[0] == 0:
        init_signals(q_full_1, 1, where(BULK, 1, 128))
        init_signals(q_empty_1, 1, 4)
        init_signals(n_full_2, 2, where(BULK, 1, 128))
        init_signals(n_empty_2, 2, 4)
        init_signals(done, 8, 1)
    cute.arch.sync_threads()
    if cute.arch.thread_idx()[0] >= 128:  # the threads that fill shared memory
        thread = cute.arch.thread_idx()[0] - 128
        tile = cute.arch.block_idx()[0]
        q_write_parity_1 = Int32(1)
        n_write_2 = Int32(0)
        n_write_parity_2 = Int32(1)
        tiles_m = Int32(cute.ceil_div(M, 128))
        h_at = Int32(tile // tiles_m)
        m_at = Int32(tile % tiles_m * 128)
        cute.arch.mbarrier_wait(q_empty_1, q_write_parity_1)
        offs_d_1 = cute.make_rmem_tensor(d_n1, Int32)
        mask_d_1 = cute.make_rmem_tensor(d_n1, Boolean)
        if const_expr(BULK):
            if thread == 0:
                cute.arch.mbarrier_arrive_and_expect_tx(q_full_1, 128 * D_WIDTH * 2)
                for d_from in cutlass.range_constexpr(0, D_WIDTH, 64):
                    load_box(
                        q_tile.iterator + cute.crd2idx((0, d_from), q_tile.layout),
                        q_map,
                        (d_from, m_at, h_at),
                        q_full_1,
                    )
        else:
            offs_m_1 = cute.make_rmem_tensor(8, Int32)
            for m_i in cutlass.range(8, unroll_full=True):
                offs_m_1[m_i] = Int32(m_at + m_axis_2((thread, m_i)))
            mask_m_1 = cute.make_rmem_tensor(8, Boolean)
            for m_i in cutlass.range(8, unroll_full=True):
                mask_m_1[m_i] = Boolean((offs_m_1[m_i] < M) | EVEN_M)
            for d_i in cutlass.range(d_n1, unroll_full=True):
                offs_d_1[d_i] = Int32(d_axis_1((thread, d_i)))
            for d_i in cutlass.range(d_n1, unroll_full=True):
                mask_d_1[d_i] = Boolean((offs_d_1[d_i] < D) | EVEN_D)
            for m_i in cutlass.range(8, unroll_full=True):
                for d_i in cutlass.range(0, d_n1, wide(8, ALIGNED_Q), unroll_full=True):
                    copy_async(
                        vector(q_tile, (m_axis_2((thread, m_i)), d_axis_1((thread, d_i))), wide(8, ALIGNED_Q)),
                        q_ptr,
                        h_at * M * D + offs_m_1[m_i] * D + offs_d_1[d_i],
                        mask_m_1[m_i] & mask_d_1[d_i],
                    )
            cute.arch.cp_async_commit_group()
            cute.arch.cp_async_wait_group(0)
            cute.arch.fence_proxy("async.shared", space="cta")
            cute.arch.mbarrier_arrive(q_full_1)
        q_write_parity_1 = Int32(1 - q_write_parity_1)
        offs_n_1 = cute.make_rmem_tensor(2, Int32)
        mask_n_1 = cute.make_rmem_tensor(2, Boolean)
        for n_at in range(0, N, 32):
            cute.arch.mbarrier_wait(n_empty_2 + n_write_2, n_write_parity_2)
            if const_expr(BULK):
                if thread == 0:
                    cute.arch.mbarrier_arrive_and_expect_tx(n_full_2 + n_write_2, 32 * D_WIDTH * 2)
                    for d_from in cutlass.range_constexpr(0, D_WIDTH, 64):
                        load_box(
                            k_tile.iterator + cute.crd2idx((n_write_2, 0, d_from), k_tile.layout),
                            k_map,
                            (d_from, n_at, h_at),
                            n_full_2 + n_write_2,
                        )
            else:
                for n_i in cutlass.range(2, unroll_full=True):
                    offs_n_1[n_i] = Int32(n_at + n_axis_1((thread, n_i)))
                for n_i in cutlass.range(2, unroll_full=True):
                    mask_n_1[n_i] = Boolean((offs_n_1[n_i] < N) | EVEN_N)
                for d_i in cutlass.range(d_n1, unroll_full=True):
                    offs_d_1[d_i] = Int32(d_axis_1((thread, d_i)))
                for d_i in cutlass.range(d_n1, unroll_full=True):
                    mask_d_1[d_i] = Boolean((offs_d_1[d_i] < D) | EVEN_D)
                for n_i in cutlass.range(2, unroll_full=True):
                    for d_i in cutlass.range(0, d_n1, wide(8, ALIGNED_K), unroll_full=True):
                        copy_async(
                            vector(k_tile, (n_write_2, n_axis_1((thread, n_i)), d_axis_1((thread, d_i))), wide(8, ALIGNED_K)),
                            k_ptr,
                            h_at * N * D + offs_n_1[n_i] * D + offs_d_1[d_i],
                            mask_n_1[n_i] & mask_d_1[d_i],
                        )
                cute.arch.cp_async_commit_group()
                cute.arch.cp_async_wait_group(0)
                cute.arch.fence_proxy("async.shared", space="cta")
                cute.arch.mbarrier_arrive(n_full_2 + n_write_2)
            n_write_parity_2 = Int32(where(n_write_2 == 1, 1 - n_write_parity_2, n_write_parity_2))
            n_write_2 = Int32(where(n_write_2 == 1, 0, n_write_2 + 1))
        for n_at in range(0, N, 32):
            cute.arch.mbarrier_wait(n_empty_2 + n_write_2, n_write_parity_2)
            if const_expr(BULK):
                if thread == 0:
                    cute.arch.mbarrier_arrive_and_expect_tx(n_full_2 + n_write_2, 32 * D_WIDTH * 2 + 32 * D_WIDTH * 2)
                    for d_from in cutlass.range_constexpr(0, D_WIDTH, 64):
                        load_box(
                            k_tile.iterator + cute.crd2idx((n_write_2, 0, d_from), k_tile.layout),
                            k_map,
                            (d_from, n_at, h_at),
                            n_full_2 + n_write_2,
                        )
                    for d_from in cutlass.range_constexpr(0, D_WIDTH, 64):
                        load_box(
                            v_tile.iterator + cute.crd2idx((n_write_2, 0, d_from), v_tile.layout),
                            v_map,
                            (d_from, n_at, h_at),
                            n_full_2 + n_write_2,
                        )
            else:
                for n_i in cutlass.range(2, unroll_full=True):
                    offs_n_1[n_i] = Int32(n_at + n_axis_1((thread, n_i)))
                for n_i in cutlass.range(2, unroll_full=True):
                    mask_n_1[n_i] = Boolean((offs_n_1[n_i] < N) | EVEN_N)
                for d_i in cutlass.range(d_n1, unroll_full=True):
                    offs_d_1[d_i] = Int32(d_axis_1((thread, d_i)))
                for d_i in cutlass.range(d_n1, unroll_full=True):
                    mask_d_1[d_i] = Boolean((offs_d_1[d_i] < D) | EVEN_D)
                for n_i in cutlass.range(2, unroll_full=True):
                    for d_i in cutlass.range(0, d_n1, wide(8, ALIGNED_K), unroll_full=True):
                        copy_async(
                            vector(k_tile, (n_write_2, n_axis_1((thread, n_i)), d_axis_1((thread, d_i))), wide(8, ALIGNED_K)),
                            k_ptr,
                            h_at * N * D + offs_n_1[n_i] * D + offs_d_1[d_i],
                            mask_n_1[n_i] & mask_d_1[d_i],
                        )
                for n_i in cutlass.range(2, unroll_full=True):
                    offs_n_1[n_i] = Int32(n_at + n_axis_1((thread, n_i)))
                for n_i in cutlass.range(2, unroll_full=True):
                    mask_n_1[n_i] = Boolean((offs_n_1[n_i] < N) | EVEN_N)
                for d_i in cutlass.range(d_n1, unroll_full=True):
                    offs_d_1[d_i] = Int32(d_axis_1((thread, d_i)))
                for d_i in cutlass.range(d_n1, unroll_full=True):
                    mask_d_1[d_i] = Boolean((offs_d_1[d_i] < D) | EVEN_D)
                for n_i in cutlass.range(2, unroll_full=True):
                    for d_i in cutlass.range(0, d_n1, wide(8, ALIGNED_K), unroll_full=True):
                        copy_async(
                            vector(v_tile, (n_write_2, n_axis_1((thread, n_i)), d_axis_1((thread, d_i))), wide(8, ALIGNED_K)),
                            v_ptr,
                            h_at * N * D + offs_n_1[n_i] * D + offs_d_1[d_i],
                            mask_n_1[n_i] & mask_d_1[d_i],
                        )
                cute.arch.cp_async_commit_group()
                cute.arch.cp_async_wait_group(0)
                cute.arch.fence_proxy("async.shared", space="cta")
                cute.arch.mbarrier_arrive(n_full_2 + n_write_2)
            n_write_parity_2 = Int32(where(n_write_2 == 1, 1 - n_write_parity_2, n_write_parity_2))
            n_write_2 = Int32(where(n_write_2 == 1, 0, n_write_2 + 1))
        for n_at in range(0, N, 32):
            cute.arch.mbarrier_wait(n_empty_2 + n_write_2, n_write_parity_2)
            if const_expr(BULK):
                if thread == 0:
                    cute.arch.mbarrier_arrive_and_expect_tx(n_full_2 + n_write_2, 32 * D_WIDTH * 2)
                    for d_from in cutlass.range_constexpr(0, D_WIDTH, 64):
                        load_box(
                            k_tile.iterator + cute.crd2idx((n_write_2, 0, d_from), k_tile.layout),
                            k_map,
                            (d_from, n_at, h_at),
                            n_full_2 + n_write_2,
                        )
            else:
                for n_i in cutlass.range(2, unroll_full=True):
                    offs_n_1[n_i] = Int32(n_at + n_axis_1((thread, n_i)))
                for n_i in cutlass.range(2, unroll_full=True):
                    mask_n_1[n_i] = Boolean((offs_n_1[n_i] < N) | EVEN_N)
                for d_i in cutlass.range(d_n1, unroll_full=True):
                    offs_d_1[d_i] = Int32(d_axis_1((thread, d_i)))
                for d_i in cutlass.range(d_n1, unroll_full=True):
                    mask_d_1[d_i] = Boolean((offs_d_1[d_i] < D) | EVEN_D)
                for n_i in cutlass.range(2, unroll_full=True):
                    for d_i in cutlass.range(0, d_n1, wide(8, ALIGNED_K), unroll_full=True):
                        copy_async(
                            vector(k_tile, (n_write_2, n_axis_1((thread, n_i)), d_axis_1((thread, d_i))), wide(8, ALIGNED_K)),
                            k_ptr,
                            h_at * N * D + offs_n_1[n_i] * D + offs_d_1[d_i],
                            mask_n_1[n_i] & mask_d_1[d_i],
                        )
                cute.arch.cp_async_commit_group()
                cute.arch.cp_async_wait_group(0)
                cute.arch.fence_proxy("async.shared", space="cta")
                cute.arch.mbarrier_arrive(n_full_2 + n_write_2)
            n_write_parity_2 = Int32(where(n_write_2 == 1, 1 - n_write_parity_2, n_write_parity_2))
            n_write_2 = Int32(where(n_write_2 == 1, 0, n_write_2 + 1))
    else:
        thread = cute.arch.thread_idx()[0]
        tile = cute.arch.block_idx()[0]
        issued = Int32(15)
        q_read_parity_1 = Int32(0)
        n_read_2 = Int32(0)
        n_read_parity_2 = Int32(0)
        offs_d = cute.make_rmem_tensor(d_n, Int32)
        for d_i in cutlass.range(d_n, unroll_full=True):
            offs_d[d_i] = Int32(d_axis((thread, d_i)))
        mask_d = cute.make_rmem_tensor(d_n, Boolean)
        for d_i in cutlass.range(d_n, unroll_full=True):
            mask_d[d_i] = Boolean((offs_d[d_i] < D) | EVEN_D)
        tiles_m = Int32(cute.ceil_div(M, 128))
        h_at = Int32(tile // tiles_m)
        m_at = Int32(tile % tiles_m * 128)
        offs_m = Int32(m_at + m_axis(thread))
        mask_m = Boolean((offs_m < M) | EVEN_M)
        o = cute.make_rmem_tensor(d_n, Float32)
        for d_i in cutlass.range(d_n, unroll_full=True):
            o[d_i] = Float32(0.0)
        cute.arch.mbarrier_wait(q_full_1, q_read_parity_1)
        mx = Float32(-fn.INFINITY)
        offs_n = cute.make_rmem_tensor(32, Int32)
        mask_n = cute.make_rmem_tensor(32, Boolean)
        x_a = cute.make_rmem_tensor(32, Float32)
        assume(N > 0)
        for n_at in range(0, N, 32):
            cute.arch.mbarrier_wait(n_full_2 + n_read_2, n_read_parity_2)
            for n_i in cutlass.range(32, unroll_full=True):
                offs_n[n_i] = Int32(n_at + n_axis((thread, n_i)))
            for n_i in cutlass.range(32, unroll_full=True):
                mask_n[n_i] = Boolean((offs_n[n_i] < N) | EVEN_N)
            s_2_begun = Int32(0)
            issued = Int32(issued + 1)
            if thread // 32 % 4 == 0:  # a warp of each four
                for n_i in cutlass.range_constexpr(0, 32, 32):
                    for d_from in cutlass.range_constexpr(0, D_WIDTH, 16):
                        tensor_mma(
                            columns + n_i,
                            matrix(q_tile, (0, d_from), (128, 16), True, 64, 128),
                            matrix(k_tile, (n_read_2, n_i, d_from), (32, 16), True, 64, 32),
                            (128, 32, 16),
                            where(d_from > 0, True, s_2_begun == 1),
                        )
                signal_matmuls(done + issued % 8)
            cute.arch.mbarrier_wait(done + issued % 8, issued // 8 % 2)
            s_2_begun = Int32(1)
            s_2 = cute.make_rmem_tensor(32, Float32)
            cute.arch.mbarrier_wait(done + issued % 8, issued // 8 % 2)
            load_columns(columns, s_2)
            cute.arch.fence_proxy("async.shared", space="cta")
            cute.arch.barrier(barrier_id=1, number_of_threads=128)
            for n_i in cutlass.range(32, unroll_full=True):
                x_a[n_i] = Float32(
                    where(offs_n[n_i] <= offs_m, s_2[n_i] * fn.rsqrt(Float32(D)), -fn.INFINITY),
                )
            part_1 = Float32(0)
            part_1 = fn.least_of(Float32)
            for n_i in cutlass.range(32, unroll_full=True):
                part_1 = Float32(fn.larger(part_1, where(mask_n[n_i], x_a[n_i], -fn.INFINITY)))
            mx = Float32(fn.larger(mx, part_1))
            arrive_warp(n_empty_2 + n_read_2)
            n_read_parity_2 = Int32(where(n_read_2 == 1, 1 - n_read_parity_2, n_read_parity_2))
            n_read_2 = Int32(where(n_read_2 == 1, 0, n_read_2 + 1))
        x_p = cute.make_rmem_tensor(32, Float32)
        assume(N > 0)
        for n_at in range(0, N, 32):
            cute.arch.mbarrier_wait(n_full_2 + n_read_2, n_read_parity_2)
            for n_i in cutlass.range(32, unroll_full=True):
                offs_n[n_i] = Int32(n_at + n_axis((thread, n_i)))
            for n_i in cutlass.range(32, unroll_full=True):
                mask_n[n_i] = Boolean((offs_n[n_i] < N) | EVEN_N)
            s_begun = Int32(0)
            issued = Int32(issued + 1)
            if thread // 32 % 4 == 0:  # a warp of each four
                for n_i in cutlass.range_constexpr(0, 32, 32):
                    for d_from in cutlass.range_constexpr(0, D_WIDTH, 16):
                        tensor_mma(
                            columns + 32 + n_i,
                            matrix(q_tile, (0, d_from), (128, 16), True, 64, 128),
                            matrix(k_tile, (n_read_2, n_i, d_from), (32, 16), True, 64, 32),
                            (128, 32, 16),
                            where(d_from > 0, True, s_begun == 1),
                        )
                signal_matmuls(done + issued % 8)
            cute.arch.mbarrier_wait(done + issued % 8, issued // 8 % 2)
            s_begun = Int32(1)
            s = cute.make_rmem_tensor(32, Float32)
            cute.arch.mbarrier_wait(done + issued % 8, issued // 8 % 2)
            load_columns(columns + 32, s)
            cute.arch.fence_proxy("async.shared", space="cta")
            cute.arch.barrier(barrier_id=1, number_of_threads=128)
            for n_i in cutlass.range(32, unroll_full=True):
                x_a[n_i] = Float32(
                    where(offs_n[n_i] <= offs_m, s[n_i] * fn.rsqrt(Float32(D)), -fn.INFINITY),
                )
            for n_i in cutlass.range(32, unroll_full=True):
                x_p[n_i] = Float32(fn.exp2_flushed(x_a[n_i] * fn.LOG2_E - mx * fn.LOG2_E))
            v = cute.make_rmem_tensor(cute.make_layout((2, d_n1), stride=(d_n1, 1)), BFloat16)
            for n_i in cutlass.range(2, unroll_full=True):
                for d_i in cutlass.range(0, d_n1, 8, unroll_full=True):
                    copy_run(
                        vector(v_tile, (n_read_2, n_axis_1((thread, n_i)), d_axis_1((thread, d_i))), 8),
                        vector(v, (n_i, d_i), 8),
                    )
            o_b = cute.make_rmem_tensor(cute.make_layout((2, d_n1), stride=(d_n1, 1)), Float32)
            for n_i in cutlass.range(2, unroll_full=True):
                for d_i in cutlass.range(d_n1, unroll_full=True):
                    o_b[n_i, d_i] = Float32(v[n_i, d_i])
            part_2 = cute.make_rmem_tensor(cute.make_layout((16, d_n2), stride=(d_n2, 1)), Float32)
            for m_i in cutlass.range(16, unroll_full=True):
                for d_i in cutlass.range(d_n2, unroll_full=True):
                    part_2[m_i, d_i] = Float32(0.0)
            part_3 = cute.make_rmem_tensor(32, Float32)
            for n_i in cutlass.range(32, unroll_full=True):
                part_3[n_i] = Float32(where(mask_n[n_i], x_p[n_i], 0.0))
            for n_i in cutlass.range(0, 32, 4, unroll_full=True):
                copy_run(
                    vector(part_3, n_i, 4),
                    vector(operand_tile_3, (m_axis(thread), n_axis((thread, n_i))), 4),
                )
            for n_i in cutlass.range(2, unroll_full=True):
                for d_i in cutlass.range(d_n1, unroll_full=True):
                    o_b_tile[n_axis_1((thread, n_i)), d_axis_1((thread, d_i))] = Float32(
                        o_b[n_i, d_i],
                    )
            cute.arch.fence_proxy("async.shared", space="cta")
            cute.arch.barrier(barrier_id=1, number_of_threads=128)
            for n_issue_1 in cutlass.range_constexpr(0, 32, 4):
                part_4 = cute.make_rmem_tensor(cute.make_layout((16, 4), stride=(4, 1)), Float32)
                for m_i in cutlass.range(16, unroll_full=True):
                    for n_i in cutlass.range(0, 4, 4, unroll_full=True):
                        copy_run(
                            vector(operand_tile_3, (m_axis_1((thread, m_i)), n_issue_1 + n_axis_2((thread, n_i))), 4),
                            vector(part_4, (m_i, n_i), 4),
                        )
                part_5 = cute.make_rmem_tensor(
                    cute.make_layout((4, d_n2), stride=(d_n2, 1)),
                    Float32,
                )
                for n_i in cutlass.range(4, unroll_full=True):
                    for d_i in cutlass.range(d_n2, unroll_full=True):
                        part_5[n_i, d_i] = Float32(
                            o_b_tile[n_issue_1 + n_axis_2((thread, n_i)), d_axis_2((thread, d_i))],
                        )
                for n_i in cutlass.range(4, unroll_full=True):
                    for m_i in cutlass.range(16, unroll_full=True):
                        for d_i in cutlass.range(d_n2, unroll_full=True):
                            part_2[m_i, d_i] = Float32(
                                part_2[m_i, d_i] + Float32(part_4[m_i, n_i]) * Float32(part_5[n_i, d_i]),
                            )
            for m_i in cutlass.range(16, unroll_full=True):
                for d_i in cutlass.range(d_n2, unroll_full=True):
                    converted_tile0_6[m_axis_1((thread, m_i)), d_axis_2((thread, d_i))] = Float32(
                        part_2[m_i, d_i],
                    )
            cute.arch.fence_proxy("async.shared", space="cta")
            cute.arch.barrier(barrier_id=1, number_of_threads=128)
            part_6 = cute.make_rmem_tensor(d_n, Float32)
            for d_i in cutlass.range(d_n, unroll_full=True):
                part_6[d_i] = Float32(converted_tile_6[m_axis(thread), d_axis((thread, d_i))])
            for d_i in cutlass.range(d_n, unroll_full=True):
                o[d_i] = Float32(o[d_i] + part_6[d_i])
            cute.arch.fence_proxy("async.shared", space="cta")
            arrive_warp(n_empty_2 + n_read_2)
            n_read_parity_2 = Int32(where(n_read_2 == 1, 1 - n_read_parity_2, n_read_parity_2))
            n_read_2 = Int32(where(n_read_2 == 1, 0, n_read_2 + 1))
        l = Float32(0.0)
        assume(N > 0)
        for n_at in range(0, N, 32):
            cute.arch.mbarrier_wait(n_full_2 + n_read_2, n_read_parity_2)
            for n_i in cutlass.range(32, unroll_full=True):
                offs_n[n_i] = Int32(n_at + n_axis((thread, n_i)))
            for n_i in cutlass.range(32, unroll_full=True):
                mask_n[n_i] = Boolean((offs_n[n_i] < N) | EVEN_N)
            s_3_begun = Int32(0)
            issued = Int32(issued + 1)
            if thread // 32 % 4 == 0:  # a warp of each four
                for n_i in cutlass.range_constexpr(0, 32, 32):
                    for d_from in cutlass.range_constexpr(0, D_WIDTH, 16):
                        tensor_mma(
                            columns + 64 + n_i,
                            matrix(q_tile, (0, d_from), (128, 16), True, 64, 128),
                            matrix(k_tile, (n_read_2, n_i, d_from), (32, 16), True, 64, 32),
                            (128, 32, 16),
                            where(d_from > 0, True, s_3_begun == 1),
                        )
                signal_matmuls(done + issued % 8)
            cute.arch.mbarrier_wait(done + issued % 8, issued // 8 % 2)
            s_3_begun = Int32(1)
            s_3 = cute.make_rmem_tensor(32, Float32)
            cute.arch.mbarrier_wait(done + issued % 8, issued // 8 % 2)
            load_columns(columns + 64, s_3)
            cute.arch.fence_proxy("async.shared", space="cta")
            cute.arch.barrier(barrier_id=1, number_of_threads=128)
            for n_i in cutlass.range(32, unroll_full=True):
                x_a[n_i] = Float32(
                    where(offs_n[n_i] <= offs_m, s_3[n_i] * fn.rsqrt(Float32(D)), -fn.INFINITY),
                )
            for n_i in cutlass.range(32, unroll_full=True):
                x_p[n_i] = Float32(fn.exp2_flushed(x_a[n_i] * fn.LOG2_E - mx * fn.LOG2_E))
            part_7 = Float32(0)
            part_7 = Float32(0)
            for n_i in cutlass.range(32, unroll_full=True):
                part_7 = Float32(part_7 + where(mask_n[n_i], x_p[n_i], 0.0))
            l = Float32(l + part_7)
            arrive_warp(n_empty_2 + n_read_2)
            n_read_parity_2 = Int32(where(n_read_2 == 1, 1 - n_read_parity_2, n_read_parity_2))
            n_read_2 = Int32(where(n_read_2 == 1, 0, n_read_2 + 1))
        y = cute.make_rmem_tensor(d_n, BFloat16)
        for d_i in cutlass.range(d_n, unroll_full=True):
            y[d_i] = BFloat16(fn.divide(o[d_i], l))
        for d_i in cutlass.range(0, d_n, wide(8, ALIGNED_Q), unroll_full=True):
            store(
                y_ptr,
                h_at * M * D + offs_m * D + offs_d[d_i],
                vector(y, d_i, wide(8, ALIGNED_Q)),
                mask_m & mask_d[d_i],
            )
        cute.arch.fence_proxy("async.shared", space="cta")
        arrive_warp(q_empty_1)
        q_read_parity_1 = Int32(1 - q_read_parity_1)
        give_columns_back(columns, 96)
