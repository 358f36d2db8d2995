"""causal: Average values by a softmax over the keys up to each query's own place.

Generated from spec 36ace2157074c073 and schedule 62a70a43c84a2aca.
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
ALIGNED_Q = True
BULK = True
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
    k_map: cute.CopyAtom,
    v_map: cute.CopyAtom,
    M: Int32,
    D: Int32,
    N: Int32,
):
    d_n = 16 * cute.ceil_div(D_WIDTH, 64)
    d_n1 = 8 * cute.ceil_div(D_WIDTH, 64)
    m_axis = cute.make_layout(((4, 8, 4), 2), stride=((0, 1, 16), 8))
    m_axis_1 = cute.make_layout(((8, 16), 4), stride=((0, 1), 16))
    d_axis = cute.make_layout(((8, 16), (8, d_n1 // 8)), stride=((8, 0), (1, 64)))
    n_axis = cute.make_layout(((4, 32), (2, 8)), stride=((2, 0), (1, 8)))
    d_axis_1 = cute.make_layout(((4, 32), (2, 8, d_n // 16)), stride=((2, 0), (1, 8, 64)))
    n_axis_1 = cute.make_layout(((8, 16), 4), stride=((0, 1), 16))
    shared = cute.arch.get_dyn_smem(Uint8, 1024)
    shared_2 = 1024 + cute.round_up(128 * D_WIDTH, 1024)
    shared_3 = shared_2 + cute.round_up(max(384 * D_WIDTH, 128 * (D_WIDTH + 8)), 1024)
    shared_4 = shared_3 + cute.round_up(384 * D_WIDTH, 1024)
    q_tile = cute.make_tensor(
        cute.recast_ptr(shared + 1024, cute.make_swizzle(3, 4, 3), BFloat16),
        cute.make_layout((64, (64, cute.ceil_div(D_WIDTH, 64))), stride=(64, (1, 64 * 64))),
    )
    k_tile = cute.make_tensor(
        cute.recast_ptr(shared + shared_2, cute.make_swizzle(3, 4, 3), BFloat16),
        cute.make_layout((3, 64, (64, cute.ceil_div(D_WIDTH, 64))), stride=(64 * D_WIDTH, 64, (1, 64 * 64))),
    )
    v_tile = cute.make_tensor(
        cute.recast_ptr(shared + shared_3, cute.make_swizzle(3, 4, 3), BFloat16),
        cute.make_layout((3, 64, (64, cute.ceil_div(D_WIDTH, 64))), stride=(64 * D_WIDTH, 64, (1, 64 * 64))),
    )
    stored_tile_3 = cute.make_tensor(
        cute.recast_ptr(shared + shared_2, None, BFloat16),
        cute.make_layout((64, D_WIDTH), stride=((D_WIDTH + 8), 1)),
    )
    n_full_1 = cute.recast_ptr(shared + (0), None, Int64)
    n_empty_1 = cute.recast_ptr(shared + (24), None, Int64)
    if cute.arch.thread_idx()[0] == 0:
        init_signals(n_full_1, 3, where(BULK, 1, 128))
        init_signals(n_empty_1, 3, 4)
    cute.arch.sync_threads()
    if cute.arch.thread_idx()[0] >= 128:  # the threads that fill shared memory
        thread = cute.arch.thread_idx()[0] - 128
        tile = cute.arch.block_idx()[0]
        n_write_1 = Int32(0)
        n_write_parity_1 = Int32(1)
        tiles_m = Int32(cute.ceil_div(M, 64))
        h_at = Int32(tile // tiles_m)
        for n_at in range(0, N, 64):
            cute.arch.mbarrier_wait(n_empty_1 + n_write_1, n_write_parity_1)
            if const_expr(BULK):
                if thread == 0:
                    cute.arch.mbarrier_arrive_and_expect_tx(n_full_1 + n_write_1, 64 * D_WIDTH * 2 + 64 * D_WIDTH * 2)
                    for d_from in cutlass.range_constexpr(0, D_WIDTH, 64):
                        load_box(
                            k_tile.iterator + cute.crd2idx((n_write_1, 0, d_from), k_tile.layout),
                            k_map,
                            (d_from, n_at, h_at),
                            n_full_1 + n_write_1,
                        )
                    for d_from in cutlass.range_constexpr(0, D_WIDTH, 64):
                        load_box(
                            v_tile.iterator + cute.crd2idx((n_write_1, 0, d_from), v_tile.layout),
                            v_map,
                            (d_from, n_at, h_at),
                            n_full_1 + n_write_1,
                        )
            else:
                offs_n_1 = cute.make_rmem_tensor(4, Int32)
                for n_i in cutlass.range(4, unroll_full=True):
                    offs_n_1[n_i] = Int32(n_at + n_axis_1((thread, n_i)))
                mask_n_1 = cute.make_rmem_tensor(4, Boolean)
                for n_i in cutlass.range(4, unroll_full=True):
                    mask_n_1[n_i] = Boolean((offs_n_1[n_i] < N) | EVEN_N)
                offs_d_1 = cute.make_rmem_tensor(d_n1, Int32)
                for d_i in cutlass.range(d_n1, unroll_full=True):
                    offs_d_1[d_i] = Int32(d_axis((thread, d_i)))
                mask_d_1 = cute.make_rmem_tensor(d_n1, Boolean)
                for d_i in cutlass.range(d_n1, unroll_full=True):
                    mask_d_1[d_i] = Boolean((offs_d_1[d_i] < D) | EVEN_D)
                for n_i in cutlass.range(4, unroll_full=True):
                    for d_i in cutlass.range(0, d_n1, wide(8, ALIGNED_K), unroll_full=True):
                        copy_async(
                            vector(k_tile, (n_write_1, n_axis_1((thread, n_i)), d_axis((thread, d_i))), wide(8, ALIGNED_K)),
                            k_ptr,
                            h_at * N * D + offs_n_1[n_i] * D + offs_d_1[d_i],
                            mask_n_1[n_i] & mask_d_1[d_i],
                        )
                for n_i in cutlass.range(4, unroll_full=True):
                    offs_n_1[n_i] = Int32(n_at + n_axis_1((thread, n_i)))
                for n_i in cutlass.range(4, unroll_full=True):
                    mask_n_1[n_i] = Boolean((offs_n_1[n_i] < N) | EVEN_N)
                for d_i in cutlass.range(d_n1, unroll_full=True):
                    offs_d_1[d_i] = Int32(d_axis((thread, d_i)))
                for d_i in cutlass.range(d_n1, unroll_full=True):
                    mask_d_1[d_i] = Boolean((offs_d_1[d_i] < D) | EVEN_D)
                for n_i in cutlass.range(4, unroll_full=True):
                    for d_i in cutlass.range(0, d_n1, wide(8, ALIGNED_K), unroll_full=True):
                        copy_async(
                            vector(v_tile, (n_write_1, n_axis_1((thread, n_i)), d_axis((thread, d_i))), wide(8, ALIGNED_K)),
                            v_ptr,
                            h_at * N * D + offs_n_1[n_i] * D + offs_d_1[d_i],
                            mask_n_1[n_i] & mask_d_1[d_i],
                        )
                cute.arch.cp_async_commit_group()
                cute.arch.cp_async_wait_group(0)
                cute.arch.fence_proxy("async.shared", space="cta")
                cute.arch.mbarrier_arrive(n_full_1 + n_write_1)
            n_write_parity_1 = Int32(where(n_write_1 == 2, 1 - n_write_parity_1, n_write_parity_1))
            n_write_1 = Int32(where(n_write_1 == 2, 0, n_write_1 + 1))
    else:
        thread = cute.arch.thread_idx()[0]
        tile = cute.arch.block_idx()[0]
        n_read_1 = Int32(0)
        n_read_parity_1 = Int32(0)
        x_a_factor = Float32(fn.rsqrt(Float32(D)))
        tiles_m = Int32(cute.ceil_div(M, 64))
        h_at = Int32(tile // tiles_m)
        m_at = Int32(tile % tiles_m * 64)
        offs_m = cute.make_rmem_tensor(2, Int32)
        for m_i in cutlass.range(2, unroll_full=True):
            offs_m[m_i] = Int32(m_at + m_axis((thread, m_i)))
        mx = cute.make_rmem_tensor(2, Float32)
        for m_i in cutlass.range(2, unroll_full=True):
            mx[m_i] = Float32(-1e+38)
        l = cute.make_rmem_tensor(2, Float32)
        for m_i in cutlass.range(2, unroll_full=True):
            l[m_i] = Float32(0.0)
        o = cute.make_rmem_tensor(
            cute.make_layout(((2, 2 // 2), (2, d_n // 2)), stride=((2, 2 * d_n), (1, 4))),
            Float32,
        )
        for m_i in cutlass.range(2, unroll_full=True):
            for d_i in cutlass.range(d_n, unroll_full=True):
                o[m_i, d_i] = Float32(0.0)
        offs_m_1 = cute.make_rmem_tensor(4, Int32)
        for m_i in cutlass.range(4, unroll_full=True):
            offs_m_1[m_i] = Int32(m_at + m_axis_1((thread, m_i)))
        mask_m_1 = cute.make_rmem_tensor(4, Boolean)
        for m_i in cutlass.range(4, unroll_full=True):
            mask_m_1[m_i] = Boolean((offs_m_1[m_i] < M) | EVEN_M)
        offs_d_1 = cute.make_rmem_tensor(d_n1, Int32)
        for d_i in cutlass.range(d_n1, unroll_full=True):
            offs_d_1[d_i] = Int32(d_axis((thread, d_i)))
        mask_d_1 = cute.make_rmem_tensor(d_n1, Boolean)
        for d_i in cutlass.range(d_n1, unroll_full=True):
            mask_d_1[d_i] = Boolean((offs_d_1[d_i] < D) | EVEN_D)
        for m_i in cutlass.range(4, unroll_full=True):
            for d_i in cutlass.range(0, d_n1, wide(8, ALIGNED_Q), unroll_full=True):
                copy_async(
                    vector(q_tile, (m_axis_1((thread, m_i)), d_axis((thread, d_i))), wide(8, ALIGNED_Q)),
                    q_ptr,
                    h_at * M * D + offs_m_1[m_i] * D + offs_d_1[d_i],
                    mask_m_1[m_i] & mask_d_1[d_i],
                )
        cute.arch.cp_async_commit_group()
        cute.arch.cp_async_wait_group(0)
        part_4 = cute.make_rmem_tensor(2, Float32)
        for m_i in cutlass.range(2, unroll_full=True):
            part_4[m_i] = Float32(0.0)
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.barrier(barrier_id=1, number_of_threads=128)
        offs_n = cute.make_rmem_tensor(16, Int32)
        mask_n = cute.make_rmem_tensor(16, Boolean)
        mx_before = cute.make_rmem_tensor(2, Float32)
        s = cute.make_rmem_tensor(
            cute.make_layout(((2, 2 // 2), (2, 16 // 2)), stride=((2, 2 * 16), (1, 4))),
            Float32,
        )
        x_a = cute.make_rmem_tensor(cute.make_layout((2, 16), stride=(16, 1)), Float32)
        part_1 = cute.make_rmem_tensor(2, Float32)
        mx_scale = cute.make_rmem_tensor(2, Float32)
        x_p = cute.make_rmem_tensor(cute.make_layout((2, 16), stride=(16, 1)), Float32)
        part_2 = cute.make_rmem_tensor(2, Float32)
        o_a = cute.make_rmem_tensor(cute.make_layout((2, 16), stride=(16, 1)), BFloat16)
        part_3 = cute.make_rmem_tensor(
            cute.make_layout(((2, 2 // 2), (2, 2, 16 // 4)), stride=((2, 8 * (16 // 4)), (1, 4, 8))),
            BFloat16,
        )
        n_ahead_1 = Int32(0)
        n_ahead_parity_1 = Int32(0)
        assume(64 > 0)
        for n_at in range(0, 64, 64):
            cute.arch.mbarrier_wait(n_full_1 + n_read_1, n_read_parity_1)
            for n_i in cutlass.range(16, unroll_full=True):
                offs_n[n_i] = Int32(n_at + n_axis((thread, n_i)))
            for n_i in cutlass.range(16, unroll_full=True):
                mask_n[n_i] = Boolean((offs_n[n_i] < N) | EVEN_N)
            for m_i in cutlass.range(2, unroll_full=True):
                mx_before[m_i] = Float32(mx[m_i])
            for m_i in cutlass.range(2, unroll_full=True):
                for n_i in cutlass.range(16, unroll_full=True):
                    s[m_i, n_i] = Float32(0.0)
            warpgroup.fence()
            for m_i in cutlass.range_constexpr(0, 2, 2):
                for n_i in cutlass.range_constexpr(0, 16, 16):
                    for d_from in cutlass.range_constexpr(0, D_WIDTH, 16):
                        warpgroup_mma(
                            result(s, (m_i, n_i), 64),
                            matrix(q_tile, (m_i * 8, d_from), (64, 16), True, 64, 64),
                            matrix(k_tile, (n_read_1, n_i % 2 + n_i // 2 * 8, d_from), (64, 16), True, 64, 64),
                            (64, 64, 16),
                        )
            warpgroup.commit_group()
            warpgroup.wait_group(0)
            for m_i in cutlass.range(2, unroll_full=True):
                for n_i in cutlass.range(16, unroll_full=True):
                    x_a[m_i, n_i] = Float32(
                        where(offs_n[n_i] <= offs_m[m_i], s[m_i, n_i], -fn.INFINITY),
                    )
            n_ahead_1 = Int32(
                where(n_at + 64 >= N, n_read_1, where(n_read_1 == 2, 0, n_read_1 + 1)),
            )
            n_ahead_parity_1 = Int32(
                where(n_at + 64 >= N, n_read_parity_1, where(n_read_1 == 2, 1 - n_read_parity_1, n_read_parity_1)),
            )
            cute.arch.mbarrier_wait(n_full_1 + n_ahead_1, n_ahead_parity_1)
            for m_i in cutlass.range(2, unroll_full=True):
                for n_i in cutlass.range(16, unroll_full=True):
                    s[m_i, n_i] = Float32(0.0)
            warpgroup.fence()
            for m_i in cutlass.range_constexpr(0, 2, 2):
                for n_i in cutlass.range_constexpr(0, 16, 16):
                    for d_from in cutlass.range_constexpr(0, D_WIDTH, 16):
                        warpgroup_mma(
                            result(s, (m_i, n_i), 64),
                            matrix(q_tile, (m_i * 8, d_from), (64, 16), True, 64, 64),
                            matrix(k_tile, (n_ahead_1, n_i % 2 + n_i // 2 * 8, d_from), (64, 16), True, 64, 64),
                            (64, 64, 16),
                        )
            warpgroup.commit_group()
            warpgroup.wait_group(1)
            for m_i in cutlass.range(2, unroll_full=True):
                part_1[m_i] = fn.least_of(Float32)
                for n_i in cutlass.range(16, unroll_full=True):
                    part_1[m_i] = Float32(
                        fn.larger(part_1[m_i], where(mask_n[n_i], x_a[m_i, n_i], -fn.INFINITY)),
                    )
            for distance in cutlass.range_constexpr(2):
                for m_i in cutlass.range(2, unroll_full=True):
                    part_1[m_i] = Float32(
                        fn.larger(part_1[m_i], shuffle_xor(part_1[m_i], 1 << distance)),
                    )
            for m_i in cutlass.range(2, unroll_full=True):
                mx[m_i] = Float32(fn.larger(mx[m_i], (part_1[m_i] * x_a_factor)))
            for m_i in cutlass.range(2, unroll_full=True):
                mx_scale[m_i] = Float32(fn.exp2_flushed((mx_before[m_i] - mx[m_i]) * fn.LOG2_E))
            for m_i in cutlass.range(2, unroll_full=True):
                l[m_i] = Float32(l[m_i] * mx_scale[m_i])
            for m_i in cutlass.range(2, unroll_full=True):
                part_4[m_i] = Float32(part_4[m_i] * mx_scale[m_i])
            for m_i in cutlass.range(2, unroll_full=True):
                for n_i in cutlass.range(16, unroll_full=True):
                    x_p[m_i, n_i] = Float32(
                        fn.exp2_flushed(x_a[m_i, n_i] * (x_a_factor * fn.LOG2_E) - mx[m_i] * fn.LOG2_E),
                    )
            for m_i in cutlass.range(2, unroll_full=True):
                part_2[m_i] = Float32(0)
                for n_i in cutlass.range(16, unroll_full=True):
                    part_2[m_i] = Float32(part_2[m_i] + where(mask_n[n_i], x_p[m_i, n_i], 0.0))
            for m_i in cutlass.range(2, unroll_full=True):
                part_4[m_i] = Float32(part_4[m_i] + part_2[m_i])
            for m_i in cutlass.range(2, unroll_full=True):
                for d_i in cutlass.range(d_n, unroll_full=True):
                    o[m_i, d_i] = Float32(o[m_i, d_i] * mx_scale[m_i])
            for m_i in cutlass.range(2, unroll_full=True):
                for n_i in cutlass.range(16, unroll_full=True):
                    o_a[m_i, n_i] = BFloat16(x_p[m_i, n_i])
            for m_i in cutlass.range(2, unroll_full=True):
                for n_i in cutlass.range(16, unroll_full=True):
                    part_3[m_i, n_i] = BFloat16(where(mask_n[n_i], Float32(o_a[m_i, n_i]), 0.0))
            warpgroup.wait_group(0)
            n_read_parity_1 = Int32(where(n_read_1 == 2, 1 - n_read_parity_1, n_read_parity_1))
            n_read_1 = Int32(where(n_read_1 == 2, 0, n_read_1 + 1))
        for n_at in range(64, N, 64):
            warpgroup.fence()
            for m_i in cutlass.range_constexpr(0, 2, 2):
                for d_i in cutlass.range_constexpr(0, d_n, 16):
                    for n_from in cutlass.range_constexpr(0, 64, 16):
                        warpgroup_mma(
                            result(o, (m_i, d_i), 64),
                            operand(part_3, (m_i, n_from // 16 * 4), [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (0, 3), (1, 2), (1, 3)]),
                            matrix(v_tile, (where(n_read_1 == 0, 2, n_read_1 - 1), n_from, d_i % 2 + d_i // 2 * 8), (64, 16), False, 64, 64),
                            (64, 64, 16),
                        )
            warpgroup.commit_group()
            warpgroup.wait_group(1)
            for n_i in cutlass.range(16, unroll_full=True):
                offs_n[n_i] = Int32(n_at + n_axis((thread, n_i)))
            for n_i in cutlass.range(16, unroll_full=True):
                mask_n[n_i] = Boolean((offs_n[n_i] < N) | EVEN_N)
            for m_i in cutlass.range(2, unroll_full=True):
                mx_before[m_i] = Float32(mx[m_i])
            for m_i in cutlass.range(2, unroll_full=True):
                for n_i in cutlass.range(16, unroll_full=True):
                    x_a[m_i, n_i] = Float32(
                        where(offs_n[n_i] <= offs_m[m_i], s[m_i, n_i], -fn.INFINITY),
                    )
            n_ahead_1 = Int32(
                where(n_at + 64 >= N, n_read_1, where(n_read_1 == 2, 0, n_read_1 + 1)),
            )
            n_ahead_parity_1 = Int32(
                where(n_at + 64 >= N, n_read_parity_1, where(n_read_1 == 2, 1 - n_read_parity_1, n_read_parity_1)),
            )
            cute.arch.mbarrier_wait(n_full_1 + n_ahead_1, n_ahead_parity_1)
            for m_i in cutlass.range(2, unroll_full=True):
                for n_i in cutlass.range(16, unroll_full=True):
                    s[m_i, n_i] = Float32(0.0)
            warpgroup.fence()
            for m_i in cutlass.range_constexpr(0, 2, 2):
                for n_i in cutlass.range_constexpr(0, 16, 16):
                    for d_from in cutlass.range_constexpr(0, D_WIDTH, 16):
                        warpgroup_mma(
                            result(s, (m_i, n_i), 64),
                            matrix(q_tile, (m_i * 8, d_from), (64, 16), True, 64, 64),
                            matrix(k_tile, (n_ahead_1, n_i % 2 + n_i // 2 * 8, d_from), (64, 16), True, 64, 64),
                            (64, 64, 16),
                        )
            warpgroup.commit_group()
            warpgroup.wait_group(2)
            for m_i in cutlass.range(2, unroll_full=True):
                part_1[m_i] = fn.least_of(Float32)
                for n_i in cutlass.range(16, unroll_full=True):
                    part_1[m_i] = Float32(
                        fn.larger(part_1[m_i], where(mask_n[n_i], x_a[m_i, n_i], -fn.INFINITY)),
                    )
            for distance in cutlass.range_constexpr(2):
                for m_i in cutlass.range(2, unroll_full=True):
                    part_1[m_i] = Float32(
                        fn.larger(part_1[m_i], shuffle_xor(part_1[m_i], 1 << distance)),
                    )
            for m_i in cutlass.range(2, unroll_full=True):
                mx[m_i] = Float32(fn.larger(mx[m_i], (part_1[m_i] * x_a_factor)))
            for m_i in cutlass.range(2, unroll_full=True):
                mx_scale[m_i] = Float32(fn.exp2_flushed((mx_before[m_i] - mx[m_i]) * fn.LOG2_E))
            for m_i in cutlass.range(2, unroll_full=True):
                l[m_i] = Float32(l[m_i] * mx_scale[m_i])
            for m_i in cutlass.range(2, unroll_full=True):
                part_4[m_i] = Float32(part_4[m_i] * mx_scale[m_i])
            for m_i in cutlass.range(2, unroll_full=True):
                for n_i in cutlass.range(16, unroll_full=True):
                    x_p[m_i, n_i] = Float32(
                        fn.exp2_flushed(x_a[m_i, n_i] * (x_a_factor * fn.LOG2_E) - mx[m_i] * fn.LOG2_E),
                    )
            for m_i in cutlass.range(2, unroll_full=True):
                part_2[m_i] = Float32(0)
                for n_i in cutlass.range(16, unroll_full=True):
                    part_2[m_i] = Float32(part_2[m_i] + where(mask_n[n_i], x_p[m_i, n_i], 0.0))
            for m_i in cutlass.range(2, unroll_full=True):
                part_4[m_i] = Float32(part_4[m_i] + part_2[m_i])
            keep_order(part_4)
            warpgroup.wait_group(1)
            arrive_warp(n_empty_1 + where(n_read_1 == 0, 2, n_read_1 - 1))
            for m_i in cutlass.range(2, unroll_full=True):
                for d_i in cutlass.range(d_n, unroll_full=True):
                    o[m_i, d_i] = Float32(o[m_i, d_i] * mx_scale[m_i])
            for m_i in cutlass.range(2, unroll_full=True):
                for n_i in cutlass.range(16, unroll_full=True):
                    o_a[m_i, n_i] = BFloat16(x_p[m_i, n_i])
            for m_i in cutlass.range(2, unroll_full=True):
                for n_i in cutlass.range(16, unroll_full=True):
                    part_3[m_i, n_i] = BFloat16(where(mask_n[n_i], Float32(o_a[m_i, n_i]), 0.0))
            warpgroup.wait_group(0)
            n_read_parity_1 = Int32(where(n_read_1 == 2, 1 - n_read_parity_1, n_read_parity_1))
            n_read_1 = Int32(where(n_read_1 == 2, 0, n_read_1 + 1))
        warpgroup.fence()
        for m_i in cutlass.range_constexpr(0, 2, 2):
            for d_i in cutlass.range_constexpr(0, d_n, 16):
                for n_from in cutlass.range_constexpr(0, 64, 16):
                    warpgroup_mma(
                        result(o, (m_i, d_i), 64),
                        operand(part_3, (m_i, n_from // 16 * 4), [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (0, 3), (1, 2), (1, 3)]),
                        matrix(v_tile, (where(n_read_1 == 0, 2, n_read_1 - 1), n_from, d_i % 2 + d_i // 2 * 8), (64, 16), False, 64, 64),
                        (64, 64, 16),
                    )
        warpgroup.commit_group()
        warpgroup.wait_group(0)
        arrive_warp(n_empty_1 + where(n_read_1 == 0, 2, n_read_1 - 1))
        for distance in cutlass.range_constexpr(2):
            for m_i in cutlass.range(2, unroll_full=True):
                part_4[m_i] = Float32(part_4[m_i] + shuffle_xor(part_4[m_i], 1 << distance))
        for m_i in cutlass.range(2, unroll_full=True):
            l[m_i] = Float32(l[m_i] + part_4[m_i])
        y = cute.make_rmem_tensor(cute.make_layout((2, d_n), stride=(d_n, 1)), BFloat16)
        for m_i in cutlass.range(2, unroll_full=True):
            for d_i in cutlass.range(d_n, unroll_full=True):
                y[m_i, d_i] = BFloat16(fn.divide(o[m_i, d_i], l[m_i]))
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.barrier(barrier_id=1, number_of_threads=128)
        for m_i in cutlass.range(2, unroll_full=True):
            for d_i in cutlass.range(d_n, unroll_full=True):
                stored_tile_3[m_axis((thread, m_i)), d_axis_1((thread, d_i))] = BFloat16(
                    y[m_i, d_i],
                )
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.barrier(barrier_id=1, number_of_threads=128)
        part_5 = cute.make_rmem_tensor(cute.make_layout((4, d_n1), stride=(d_n1, 1)), BFloat16)
        for m_i in cutlass.range(4, unroll_full=True):
            for d_i in cutlass.range(d_n1, unroll_full=True):
                part_5[m_i, d_i] = BFloat16(
                    stored_tile_3[m_axis_1((thread, m_i)), d_axis((thread, d_i))],
                )
        for m_i in cutlass.range(4, unroll_full=True):
            offs_m_1[m_i] = Int32(m_at + m_axis_1((thread, m_i)))
        for m_i in cutlass.range(4, unroll_full=True):
            mask_m_1[m_i] = Boolean((offs_m_1[m_i] < M) | EVEN_M)
        for d_i in cutlass.range(d_n1, unroll_full=True):
            offs_d_1[d_i] = Int32(d_axis((thread, d_i)))
        for d_i in cutlass.range(d_n1, unroll_full=True):
            mask_d_1[d_i] = Boolean((offs_d_1[d_i] < D) | EVEN_D)
        for m_i in cutlass.range(4, unroll_full=True):
            for d_i in cutlass.range(0, d_n1, wide(8, ALIGNED_Q), unroll_full=True):
                store(
                    y_ptr,
                    h_at * M * D + offs_m_1[m_i] * D + offs_d_1[d_i],
                    vector(part_5, (m_i, d_i), wide(8, ALIGNED_Q)),
                    mask_m_1[m_i] & mask_d_1[d_i],
                )
