"""The errors of the simulator, one test for each message."""

from pathlib import Path

import numpy as np
import pytest

from backends.sim.native.kernel_fixture import machine, run, tiny
from backends.sim.native.kernel_process import kernel_process
from backends.sim.native.load import load

# name: (program of every processing element, the message)
_PROGRAMS = {
    "unwritten_operand": (
        """auto a = pe.buffer("a", Dtype::f32, {{M, 4}, {N, 8}}, 2);
        auto b = pe.buffer("b", Dtype::f32, {{M, 4}, {N, 8}}, 1);
        Tile t = a.next();
        co_await pe.fill(t, 1, {{M, 2}, {N, 8}});
        co_await pe.map(Op::neg, b.tile(), {t}, {{M, 4}, {N, 8}});""",
        r"PE \d at cycle \d+: map neg to 'b': reads element 16 of buffer 'a' \(slot 1\), "
        r"which was never written",
    ),
    "unwritten_store": (
        """auto a = pe.buffer("a", Dtype::f32, {{N, 8}}, 1);
        co_await pe.store(args.tensor(0), {{0}, {0, N, 8}}, a.tile());""",
        r"store of 'a': reads element 0 of buffer 'a' .* never written",
    ),
    "unwritten_accumulator": (
        """auto a = pe.buffer("a", Dtype::f32, {{M, 4}, {K, 4}}, 1);
        auto c = pe.buffer("c", Dtype::f32, {{M, 4}, {N, 4}}, 1);
        co_await pe.fill(a.tile(), 1, {{M, 4}, {K, 4}});
        Tile b = a.tile().rename(M, N);
        co_await pe.matmul(c.tile(), a.tile(), b, {{M, 4}, {N, 4}, {K, 4}}, true);""",
        r"matmul to 'c': reads element 0 of buffer 'c'",
    ),
    "unwritten_positions": (
        """auto a = pe.buffer("a", Dtype::f32, {{M, 4}, {N, 8}}, 1);
        auto r = pe.buffer("r", Dtype::i32, {{M, 4}}, 1);
        co_await pe.load(a.tile(), args.tensor(0), {indirect(r.tile(), M, 4), {0, N, 8}});""",
        r"load to 'a': reads element 0 of buffer 'r'",
    ),
    "load_outside": (
        """auto a = pe.buffer("a", Dtype::f32, {{M, 4}, {N, 8}}, 1);
        co_await pe.load(a.tile(), args.tensor(0), {{6, M, 4}, {0, N, 8}});""",
        r"PE 0 at cycle 2: load to 'a': the region leaves 'x': positions 6 \.\. 9 along "
        r"dimension 0, whose extent is 8",
    ),
    "store_outside": (
        """auto a = pe.buffer("a", Dtype::f32, {{M, 4}, {N, 8}}, 1);
        co_await pe.fill(a.tile(), 0, {{M, 4}, {N, 8}});
        co_await pe.store(args.tensor(0), {{-1, M, 4}, {0, N, 8}}, a.tile());""",
        r"store of 'a': the region leaves 'x': positions -1 \.\. 2",
    ),
    "gather_outside": (
        """auto a = pe.buffer("a", Dtype::f32, {{M, 4}, {N, 8}}, 1);
        auto r = pe.buffer("r", Dtype::i32, {{M, 4}}, 1);
        co_await pe.iota(r.tile(), M, 6, {{M, 4}});
        co_await pe.load(a.tile(), args.tensor(0), {indirect(r.tile(), M, 4), {0, N, 8}});""",
        r"load to 'a': position 8 along dimension 0 of 'x' is out of range; its extent is 8",
    ),
    "take_outside": (
        """auto a = pe.buffer("a", Dtype::i32, {{M, 4}}, 1);
        auto b = pe.buffer("b", Dtype::i32, {{M, 4}}, 1);
        co_await pe.iota(a.tile(), M, 1, {{M, 4}});
        co_await pe.take(b.tile(), a.tile().rename(M, K), K, 4, a.tile(), {{M, 4}});""",
        r"take to 'b': position 4 is out of range; the table 'a' has 4 valid positions",
    ),
    "box_exceeds_buffer": (
        """auto a = pe.buffer("a", Dtype::f32, {{M, 4}, {N, 8}}, 1);
        co_await pe.fill(a.tile(), 0, {{M, 2}, {N, 9}});""",
        r"fill to 'a': the box exceeds buffer 'a': positions 0 \.\. 8 along dimension 1, whose "
        r"extent is 8",
    ),
    "window_exceeds_buffer": (
        """auto a = pe.buffer("a", Dtype::f32, {{M, 8}}, 1);
        auto b = pe.buffer("b", Dtype::f32, {{P, 7}, {Q, 3}}, 1);
        co_await pe.fill(a.tile(), 0, {{M, 8}});
        Tile w = a.tile().window(M, {{P, 1}, {Q, 1}});
        co_await pe.map(Op::copy, b.tile(), {w}, {{P, 7}, {Q, 3}});""",
        r"the box exceeds buffer 'a': positions 0 \.\. 8",
    ),
    "shift_exceeds_buffer": (
        """auto a = pe.buffer("a", Dtype::f32, {{M, 8}}, 1);
        co_await pe.fill(a.tile().shift(M, -1), 0, {{M, 8}});""",
        r"the box exceeds buffer 'a' of 8 elements: it starts at element -1",
    ),
    "local_overflow": (
        """auto a = pe.buffer("a", Dtype::f32, {{M, 100}}, 2);
        auto b = pe.buffer("big", Dtype::f32, {{M, 1000}, {N, 32}}, 2);""",
        r"PE 0 at cycle 0: buffer 'big' needs 256000 bytes, 130272 of 131072 left",
    ),
    "buffer_without_extent": (
        """auto a = pe.buffer("a", Dtype::f32, {{M, 0}}, 2);""",
        r"buffer 'a' has extent 0 along axis 0; it must be at least 1",
    ),
    "buffer_without_stages": (
        """auto a = pe.buffer("a", Dtype::f32, {{M, 1}}, 0);""",
        r"buffer 'a' has 0 stages; it must be at least 1",
    ),
    "buffer_too_many": (
        """auto a = pe.buffer("a", Dtype::b8, {{M, 1 << 20}, {N, 1 << 20}}, 1);""",
        r"buffer 'a' has more elements than local memory has bytes \(131072\)",
    ),
    "buffer_axis_twice": (
        """auto a = pe.buffer("a", Dtype::f32, {{M, 2}, {M, 2}}, 1);""",
        r"buffer 'a' names axis 0 twice",
    ),
    "rank_above_twelve": (
        """auto a = pe.buffer("a", Dtype::f32, {{M, 8}}, 1);
        Tile w = a.tile().window(M, {{1, 1}, {2, 1}, {3, 1}, {4, 1}, {5, 1}});
        w = w.window(1, {{11, 1}, {12, 1}, {13, 1}, {14, 1}, {15, 1}});
        w = w.window(2, {{21, 1}, {22, 1}, {23, 1}, {24, 1}, {25, 1}});""",
        r"PE 0 at cycle 0: program: more than 12 axes",
    ),
    "axis_not_in_tile": (
        """auto a = pe.buffer("a", Dtype::f32, {{M, 8}}, 1);
        Tile t = a.tile().fix(N, 0);
        co_await pe.fill(t, 0, {});""",
        r"program: a tile lacks the axis named in fix, shift, rename or window",
    ),
    "tile_of_no_buffer": (
        """co_await pe.fill(Tile{}, 0, {});""",
        r"fill: a tile that belongs to no buffer",
    ),
    "tile_of_other_dtype": (
        """auto a = pe.buffer("a", Dtype::f32, {{M, 8}}, 1);
        Tile t = a.tile();
        t.dtype = Dtype::i64;
        co_await pe.fill(t, 0, {{M, 8}});""",
        r"a tile of i64 in buffer 'a' of f32",
    ),
    "axis_not_in_box": (
        """auto a = pe.buffer("a", Dtype::f32, {{M, 8}, {N, 2}}, 1);
        co_await pe.fill(a.tile(), 0, {{M, 8}});""",
        r"a tile of buffer 'a' has axis 1, which the box lacks; fix it or add it to the box",
    ),
    "box_axis_twice": (
        """auto a = pe.buffer("a", Dtype::f32, {{M, 8}}, 1);
        co_await pe.fill(a.tile(), 0, {{M, 8}, {M, 8}});""",
        r"the box names axis 0 twice",
    ),
    "negative_extent": (
        """auto a = pe.buffer("a", Dtype::f32, {{M, 8}}, 1);
        co_await pe.fill(a.tile(), 0, {{M, -1}});""",
        r"extent -1 of axis 0 is negative",
    ),
    "map_does_not_reduce": (
        """auto a = pe.buffer("a", Dtype::f32, {{M, 8}, {N, 2}}, 1);
        auto b = pe.buffer("b", Dtype::f32, {{M, 8}}, 1);
        co_await pe.map(Op::copy, b.tile(), {a.tile()}, {{M, 8}, {N, 2}});""",
        r"buffer 'b' lacks axis 1 of the box; only reduce and matmul sum over an axis",
    ),
    "map_operand_count": (
        """auto a = pe.buffer("a", Dtype::f32, {{M, 8}}, 1);
        co_await pe.map(Op::add, a.tile(), {a.tile()}, {{M, 8}});""",
        r"map add to 'a': takes 2 operands, got 1",
    ),
    "map_mixes_dtypes": (
        """auto a = pe.buffer("a", Dtype::f32, {{M, 8}}, 1);
        auto b = pe.buffer("b", Dtype::i32, {{M, 8}}, 1);
        co_await pe.map(Op::add, a.tile(), {a.tile(), b.tile()}, {{M, 8}});""",
        r"dtypes f32 and i32 do not mix in one map; convert with copy",
    ),
    "special_of_integers": (
        """auto b = pe.buffer("b", Dtype::i32, {{M, 8}}, 1);
        co_await pe.map(Op::exp, b.tile(), {b.tile()}, {{M, 8}});""",
        r"the special engine does not take i32; copy to another dtype",
    ),
    "integer_division_by_zero": (
        """auto b = pe.buffer("b", Dtype::i32, {{M, 8}}, 1);
        co_await pe.iota(b.tile(), M, 0, {{M, 8}});
        co_await pe.map(Op::floordiv, b.tile(), {1, b.tile()}, {{M, 8}});""",
        r"map floordiv to 'b': an integer is divided by zero",
    ),
    "integer_modulo_zero": (
        """auto b = pe.buffer("b", Dtype::i32, {{M, 8}}, 1);
        co_await pe.iota(b.tile(), M, 0, {{M, 8}});
        co_await pe.map(Op::mod, b.tile(), {b.tile(), 0}, {{M, 8}});""",
        r"an integer is taken modulo zero",
    ),
    "nan_to_integer": (
        """auto a = pe.buffer("a", Dtype::f32, {{M, 8}}, 1);
        auto b = pe.buffer("b", Dtype::i32, {{M, 8}}, 1);
        co_await pe.fill(a.tile(), 0, {{M, 8}});
        co_await pe.map(Op::div, a.tile(), {a.tile(), 0}, {{M, 8}});
        co_await pe.map(Op::copy, b.tile(), {a.tile()}, {{M, 8}});""",
        r"map copy to 'b': a NaN is converted to an integer",
    ),
    "dma_does_not_convert": (
        """auto a = pe.buffer("a", Dtype::f16, {{N, 8}}, 1);
        co_await pe.load(a.tile(), args.tensor(0), {{0}, {0, N, 8}});""",
        r"'x' is f32, buffer 'a' is f16; DMA does not convert",
    ),
    "region_rank": (
        """auto a = pe.buffer("a", Dtype::f32, {{N, 8}}, 1);
        co_await pe.load(a.tile(), args.tensor(0), {{0, N, 8}});""",
        r"the region has 1 dimensions, 'x' has 2",
    ),
    "region_step": (
        """auto a = pe.buffer("a", Dtype::f32, {{N, 8}}, 1);
        co_await pe.load(a.tile(), args.tensor(0), {{0}, {7, N, 8, -1}});""",
        r"dimension 1 of 'x' has step -1; at least 1",
    ),
    "region_without_axis": (
        """auto a = pe.buffer("a", Dtype::f32, {{N, 8}}, 1);
        co_await pe.load(a.tile(), args.tensor(0), {{0, kNoAxis, 2}, {0, N, 8}});""",
        r"dimension 0 of 'x' has extent 2 but no axis",
    ),
    "region_extent": (
        """auto a = pe.buffer("a", Dtype::f32, {{N, 8}}, 1);
        co_await pe.load(a.tile(), args.tensor(0), {{0}, {0, N, -2}});""",
        r"dimension 1 of 'x' has extent -2",
    ),
    "region_axis_not_in_tile": (
        """auto a = pe.buffer("a", Dtype::f32, {{N, 8}}, 1);
        co_await pe.load(a.tile(), args.tensor(0), {{0, M, 2}, {0, N, 8}});""",
        r"the tile of buffer 'a' lacks axis 0 of the region",
    ),
    "float_positions": (
        """auto a = pe.buffer("a", Dtype::f32, {{N, 8}}, 1);
        co_await pe.load(a.tile(), args.tensor(0), {{0}, indirect(a.tile(), N, 8)});""",
        r"positions are f32 \(buffer 'a'\); they must be i32 or i64",
    ),
    "tensor_not_given": (
        """auto a = pe.buffer("a", Dtype::f32, {{N, 8}}, 1);
        co_await pe.load(a.tile(), args.tensor(3), {{0}, {0, N, 8}});""",
        r"tensor 3 is used; the launch has 2",
    ),
    "add_of_b8": (
        """auto a = pe.buffer("a", Dtype::b8, {{N, 4}}, 1);
        co_await pe.add(args.tensor(1), {{0, N, 4}}, a.tile());""",
        r"add of 'a': b8 does not add",
    ),
    "number_of_floats": (
        """[[maybe_unused]] Index n = co_await pe.number(args.tensor(0), {0, 0});""",
        r"PE 0 at cycle 2: number: 'x' is f32; a number is i32 or i64",
    ),
    "reduce_mixes_dtypes": (
        """auto a = pe.buffer("a", Dtype::i32, {{M, 8}}, 1);
        auto b = pe.buffer("b", Dtype::f32, {}, 1);
        co_await pe.reduce(Reduction::sum, b.tile(), a.tile(), {{M, 8}}, false);""",
        r"dtypes f32 and i32 do not mix in reduce",
    ),
    "scan_carry_has_axis": (
        """auto a = pe.buffer("a", Dtype::f32, {{M, 8}}, 1);
        co_await pe.scan(Reduction::sum, a.tile(), a.tile(), M, a.tile(), {{M, 8}});""",
        r"the carry has axis 0 of the scan",
    ),
    "scan_carry_lacks_axis": (
        """auto a = pe.buffer("a", Dtype::f32, {{M, 8}, {N, 2}}, 1);
        auto c = pe.buffer("c", Dtype::f32, {}, 1);
        co_await pe.scan(Reduction::sum, a.tile(), a.tile(), M, c.tile(), {{M, 8}, {N, 2}});""",
        r"the carry lacks axis 1 of the box",
    ),
    "scan_without_axis": (
        """auto a = pe.buffer("a", Dtype::f32, {{M, 8}}, 1);
        co_await pe.scan(Reduction::sum, a.tile(), a.tile(), N, a.tile(), {{M, 8}});""",
        r"the box lacks axis 1",
    ),
    "bucketize_box_has_axis": (
        """auto a = pe.buffer("a", Dtype::f32, {{M, 8}}, 1);
        auto b = pe.buffer("b", Dtype::i32, {{M, 8}}, 1);
        co_await pe.bucketize(b.tile(), a.tile(), a.tile(), M, 8, {{M, 8}});""",
        r"the box has axis 0 of the borders",
    ),
    "bucketize_borders_lack_axis": (
        """auto a = pe.buffer("a", Dtype::f32, {{M, 8}}, 1);
        auto b = pe.buffer("b", Dtype::i32, {{M, 8}}, 1);
        co_await pe.bucketize(b.tile(), a.tile(), a.tile(), K, 8, {{M, 8}});""",
        r"a tile of buffer 'a' lacks axis 2",
    ),
    "bucketize_to_floats": (
        """auto a = pe.buffer("a", Dtype::f32, {{M, 8}}, 1);
        Tile borders = a.tile().rename(M, K);
        co_await pe.bucketize(a.tile(), a.tile(), borders, K, 8, {{M, 8}});""",
        r"bucket numbers are f32; they must be i32 or i64",
    ),
    "bucketize_negative_count": (
        """auto a = pe.buffer("a", Dtype::f32, {{M, 8}}, 1);
        Tile borders = a.tile().rename(M, K);
        co_await pe.bucketize(a.tile(), a.tile(), borders, K, -1, {{M, 8}});""",
        r"count -1 is negative",
    ),
    "take_box_has_axis": (
        """auto a = pe.buffer("a", Dtype::i32, {{M, 8}}, 1);
        co_await pe.take(a.tile(), a.tile(), M, 8, a.tile(), {{M, 8}});""",
        r"the box has axis 0 of the table",
    ),
    "matmul_axis_in_one_tile": (
        """auto a = pe.buffer("a", Dtype::f32, {{M, 4}, {K, 4}}, 1);
        auto c = pe.buffer("c", Dtype::f32, {{N, 4}}, 1);
        Tile b = a.tile().rename(M, N);
        co_await pe.matmul(c.tile(), a.tile(), b, {{M, 4}, {N, 4}, {K, 4}}, false);""",
        r"axis 0 is in 1 of the three tiles; it must be in two or three",
    ),
    "matmul_two_dtypes": (
        """auto a = pe.buffer("a", Dtype::f32, {{M, 4}, {K, 4}}, 1);
        auto b = pe.buffer("b", Dtype::f16, {{N, 4}, {K, 4}}, 1);
        auto c = pe.buffer("c", Dtype::f32, {{M, 4}, {N, 4}}, 1);
        co_await pe.matmul(c.tile(), a.tile(), b.tile(), {{M, 4}, {N, 4}, {K, 4}}, false);""",
        r"the factors are f32 and f16; they must have one dtype",
    ),
    "matmul_result_dtype": (
        """auto a = pe.buffer("a", Dtype::f16, {{M, 4}, {K, 4}}, 1);
        auto c = pe.buffer("c", Dtype::f16, {{M, 4}, {N, 4}}, 1);
        Tile b = a.tile().rename(M, N);
        co_await pe.matmul(c.tile(), a.tile(), b, {{M, 4}, {N, 4}, {K, 4}}, false);""",
        r"the result is f16; for factors of f16 it must be f32",
    ),
    "peer_does_not_exist": (
        """auto a = pe.buffer("a", Dtype::f32, {{M, 4}}, 1);
        co_await pe.send(4, a.tile(), {{M, 4}});""",
        r"send of 'a': PE 4 does not exist; 0 \.\. 3",
    ),
    "exchange_dtypes": (
        """auto a = pe.buffer("a", Dtype::f32, {{M, 4}}, 1);
        auto b = pe.buffer("b", Dtype::f16, {{M, 4}}, 1);
        co_await pe.fill(a.tile(), 0, {{M, 4}});
        if (pe.id() == 0) co_await pe.send(1, a.tile(), {{M, 4}});
        if (pe.id() == 1) co_await pe.receive(b.tile(), 0, {{M, 4}});""",
        r"PE 1 at cycle \d+: receive to 'b': receives f16, PE 0 sends f32",
    ),
    "exchange_boxes": (
        """auto a = pe.buffer("a", Dtype::f32, {{M, 4}}, 1);
        co_await pe.fill(a.tile(), 0, {{M, 4}});
        if (pe.id() == 0) co_await pe.send(1, a.tile(), {{M, 4}});
        if (pe.id() == 1) co_await pe.receive(a.tile(), 0, {{M, 3}});""",
        r"receives another box than PE 0 sends",
    ),
    "reduction_without_lanes": (
        """auto a = pe.buffer("a", Dtype::i64, {{M, 4}}, 1);
        co_await pe.fill(a.tile(), 0, {{M, 4}});
        if (pe.id() == 0) co_await pe.send(1, a.tile(), {{M, 4}});
        if (pe.id() == 1) co_await pe.receive(a.tile(), 0, {{M, 4}}, Reduction::sum);""",
        r"the reduction engine does not take i64",
    ),
    "group_size_out_of_range": (
        """auto a = pe.buffer("a", Dtype::f32, {{N, 8}}, 1);
        co_await pe.load_shared(a.tile(), args.tensor(0), {{0}, {0, N, 8}}, {7, 5});""",
        r"group 7 has size 5; it must be 1 \.\. 4",
    ),
    "group_sizes_differ": (
        """auto a = pe.buffer("a", Dtype::f32, {{N, 8}}, 1);
        Group group{7, pe.id() == 3 ? 3 : 4};
        co_await pe.load_shared(a.tile(), args.tensor(0), {{0}, {0, N, 8}}, group);""",
        r"PE 3 .*load_shared to 'a': joins group 7 with size 3; others gave size 4",
    ),
    "group_too_many": (
        """auto a = pe.buffer("a", Dtype::f32, {{N, 8}}, 1);
        co_await pe.load_shared(a.tile(), args.tensor(0), {{0}, {0, N, 8}}, {7, 3});""",
        r"is one more than the 3 members of group 7",
    ),
    "group_regions_differ": (
        """auto a = pe.buffer("a", Dtype::f32, {{N, 8}}, 1);
        co_await pe.load_shared(a.tile(), args.tensor(0), {{pe.id()}, {0, N, 8}}, {7, 4});""",
        r"loads another region than PE \d of group 7",
    ),
    "not_awaited": (
        """auto a = pe.buffer("a", Dtype::f32, {{N, 8}}, 1);
        for (int i = 0; i < 50; ++i) (void)pe.fill(a.tile(), 0, {{N, 8}});
        co_return;""",
        r"fill: an earlier command was issued without co_await",
    ),
    "deadlock_send": (
        """auto a = pe.buffer("a", Dtype::f32, {{M, 4}}, 1);
        co_await pe.fill(a.tile(), 0, {{M, 4}});
        if (pe.id() == 0) co_await pe.send(1, a.tile(), {{M, 4}});""",
        r"deadlock at cycle \d+:\n  PE 0 mesh_out: send of 'a', issued at cycle 4, waits for "
        r"PE 1 to receive$",
    ),
    "deadlock_receive": (
        """auto a = pe.buffer("a", Dtype::f32, {{M, 4}}, 1);
        if (pe.id() == 2) co_await pe.receive(a.tile(), 3, {{M, 4}});
        if (pe.id() == 2) co_await pe.map(Op::neg, a.tile(), {a.tile()}, {{M, 4}});""",
        r"PE 2 vector: map neg to 'a', issued at cycle 4, waits for slot 0 of 'a': 2 writes and "
        r"1 reads are not complete\n  PE 2 mesh_in: receive to 'a', issued at cycle 2, waits "
        r"for PE 3 to send",
    ),
    "deadlock_group": (
        """auto a = pe.buffer("a", Dtype::f32, {{N, 8}}, 1);
        if (pe.id() < 2)
          co_await pe.load_shared(a.tile(), args.tensor(0), {{0}, {0, N, 8}}, {7, 3});""",
        r"PE 0 dma_in: load_shared to 'a', issued at cycle 2, waits for group 7: 2 of 3 members "
        r"have come \(PE 0, 1\)",
    ),
    "deadlock_barrier": (
        """if (pe.id() != 3) co_await pe.barrier();""",
        r"PE 0 program, since cycle 2, waits for the barrier: 3 of 4 have come",
    ),
    "deadlock_queue": (
        """auto a = pe.buffer("a", Dtype::f32, {{M, 4}}, 1);
        for (int i = 0; pe.id() == 0 && i < 20; ++i)
          co_await pe.receive(a.tile(), 1, {{M, 4}});""",
        r"PE 0 program, since cycle 34, waits for room in the queue of mesh_in",
    ),
}
_SOURCE = "".join(f"KERNEL({name}) {{\n{body}\n}}\n" for name, (body, _) in _PROGRAMS.items())
# A program without a command must declare itself a coroutine.
_SOURCE = _SOURCE.replace("\n}\n", "\nco_return;\n}\n")


def _tensors() -> dict[str, np.ndarray]:
    return {"x": np.ones((8, 8), np.float32), "mask": np.zeros(4, np.bool_)}


@pytest.mark.parametrize("name", _PROGRAMS)
def test_program_is_refused(name: str) -> None:
    reduction = {"reduction": {"startup_cycles": 8, "lanes": {"f32": 16, "i32": 16}}}
    with pytest.raises(load().SimulationError, match=_PROGRAMS[name][1]):
        run(_SOURCE, _tensors(), launches=[(name, [0, 1], [])], machine=tiny(**reduction))


_LOOP = """
KERNEL(k) {
  auto a = pe.buffer("a", Dtype::f32, {{M, 8}}, 1);
  for (;;) co_await pe.fill(a.tile(), 0, {{M, 8}});
}
"""


def test_a_program_that_does_not_end_meets_the_cycle_limit() -> None:
    with pytest.raises(load().SimulationError, match=r"the limit is 5000 cycles"):
        run(_LOOP, {}, max_cycles=5000)


def test_a_program_that_does_not_end_meets_the_event_limit() -> None:
    with pytest.raises(load().SimulationError, match=r"the limit is 7000 events"):
        run(_LOOP, {}, max_events=7000)


def test_a_kernel_that_is_not_there_is_named() -> None:
    with pytest.raises(load().SimulationError, match=r"has no kernel 'other'"):
        run(_LOOP, {}, launches=[("other", [], [])])


def test_a_library_that_is_not_there_is_named() -> None:
    with pytest.raises(load().SimulationError, match=r"cannot load '/no/such.so'"):
        with kernel_process(Path("/no/such.so")) as place:
            load().simulate(tiny(), place, [], [], names=[], dtypes=[])


def test_a_launch_with_an_unknown_tensor_is_refused() -> None:
    with pytest.raises(load().SimulationError, match=r"launch of 'k' names tensor 1; there are 0"):
        run(_LOOP, {}, launches=[("k", [1], [])])


def test_a_trace_that_cannot_be_written_is_an_error() -> None:
    with pytest.raises(load().SimulationError, match=r"cannot write the trace to '/no/such/t'"):
        run("KERNEL(k) { co_return; }", {}, trace="/no/such/t")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.pop("clock_hz"), r"the machine lacks clock_hz"),
        (lambda m: m.update(rows=0), r"rows = 0: must be at least 1"),
        (lambda m: m.update(issue_cycles=1.5), r"issue_cycles = 1.5: must be a whole number"),
        (lambda m: m.update(colour=1), r"colour is not a field of a machine"),
        (lambda m: m.update(dma=3), r"dma = 3: must be a table"),
        (lambda m: m["dma"].pop("row_cycles"), r"the machine lacks dma.row_cycles"),
        (lambda m: m["dma"].update(row_cycles=-1), r"dma.row_cycles = -1: must be 0 or more"),
        (lambda m: m["dma"].update(chunk_bytes=1000), r"dma.chunk_bytes = 1000: must divide"),
        (lambda m: m["dram"].update(interleave_bytes=100), r"multiple of shared.block_bytes"),
        (lambda m: m["shared"].update(bytes=100), r"shared.bytes = 100: must hold at least one"),
        (lambda m: m["mesh"].update(bytes_per_cycle=0), r"mesh.bytes_per_cycle = 0: must be grea"),
        (lambda m: m["mesh"].update(hop_cycles="2"), r"mesh.hop_cycles = '2': must be a number"),
        (lambda m: m["special"].update(table_bits=2), r"special.table_bits = 2: must be 5"),
        (lambda m: m["vector"]["lanes"].update(f8=1), r"vector.lanes.f8 is not a field"),
    ],
)
def test_a_wrong_machine_is_refused_by_field(change, message: str) -> None:
    wrong = {k: dict(v) if isinstance(v, dict) else v for k, v in machine().items()}
    wrong["vector"]["lanes"] = dict(wrong["vector"]["lanes"])
    change(wrong)
    with pytest.raises(ValueError, match=message):
        run("KERNEL(k) { co_return; }", {}, machine=wrong)


@pytest.mark.parametrize(
    ("array", "names", "dtypes", "message"),
    [
        (np.ones((4, 4), np.float32)[:, ::2], ["x"], ["f32"], r"'x' is not C-contiguous"),
        (np.ones(4, np.float32), ["x"], ["f16"], r"'x' has elements of 4 bytes; f16 has 2"),
        (np.ones(4, np.float32), ["x"], ["f8"], r"'x' has dtype 'f8'; it must be one of"),
        (np.ones([1] * 13, np.float32), ["x"], ["f32"], r"'x' has rank 13; at most 12"),
        (np.broadcast_to(np.float32(1), ()), ["x"], ["f32"], r"'x' is read-only"),
        (np.ones(4, np.float32), [], ["f32"], r"1 tensors have 0 names and 1 dtypes"),
    ],
)
def test_a_wrong_tensor_is_refused(array, names, dtypes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load().simulate(tiny(), -1, [], [array], names=names, dtypes=dtypes)
