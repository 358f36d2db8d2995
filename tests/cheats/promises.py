"""Cheats by what a source promises: alignment and bounds to a compiler, order to its threads, rows to whoever looks at
some of them. And promises that are kept. For tests."""

from __future__ import annotations

from tests.cheats.case import Case

_STORE = "    tl.store(y_ptr + m_at * K + offs_k, y, mask=mask_k)\n"
_Y = "    y = x * 2.0\n"
_OFFS = "    offs_k = k_at + tl.arange(0, 128)\n"
_TILES = "    tiles_k = tl.cdiv(K, 128)\n"
_KERNEL = "@triton.jit\ndef twice_0"
_MORE = "@triton.jit\ndef more(value, at):\n    tl.atomic_add(at, value)\n\n\n"
_HIP_LOADS = "for (int k_i = 0; k_i < 2; k_i += ALIGNED_X ? 2 : 1)\n    load<ALIGNED_X ? 2 : 1>"
_HIP_STORES = (
    "  #pragma unroll\n  for (int k_i = 0; k_i < 2; k_i += ALIGNED_X ? 2 : 1)\n"
    "    store<ALIGNED_X ? 2 : 1>(place(y_ptr, m_at * K + offs_k[k_i]), &y[k_i], mask_k[k_i]);\n"
)
_HIP_AFTER = (
    _HIP_STORES.replace("m_at * K", "(m_at + 1) * K")
    .replace("mask_k[k_i]);", "mask_k[k_i] && tile + tiles_k < (int)gridDim.x);")
    .replace("&y[k_i]", "&x[k_i]")
)
_BARRIER = "  __syncthreads();\n"
_TWO = "(x_t(m_i * 16 + k_i) * 2.0f)"
_LOADED = "x_t(m_i * 16 + k_i) = x_g((m_at + m_i) * K + k_at + k_i);"
_PE_LOAD = "    co_await pe.load(x_t.next()"
_PE_STORE = "    co_await pe.store(y_g, {"
_BOX = "{axis::k, k_n}};"
_RACE = "stores `y_ptr` or adds to it"


def cheats() -> list[Case]:
    """All of them."""
    return [
        Case(f"{name}, {place}", why, kernel, place, "", ((old, new),), stage, said, group)
        for kernel, place, name, old, new, stage, said, group, why in _ROWS
    ]


def honest() -> list[Case]:
    """What is so, though not what is emitted."""
    rows = (
        ("twice", "triton", "a tile that is said to begin at its length", _OFFS, _OFFS + "    offs_k = tl.multiple_of(offs_k, 128)\n"),
        ("twice", "triton", "places that do follow each other", _OFFS, _OFFS + "    offs_k = tl.max_contiguous(offs_k, 128)\n"),
        ("twice", "triton", "an input that is said to be aligned, and is", _OFFS, _OFFS + "    x_ptr = tl.multiple_of(x_ptr, 16)\n"),
        ("twice", "triton", "a size that is said to be positive", _OFFS, _OFFS + "    tl.assume(K > 0)\n"),
        ("twice", "triton", "a load by the second cache", "other=0.0)", "other=0.0, cache_modifier='.cg')"),
        ("twice", "triton", "a loop that counts to three", _Y, _Y + "    n = 0\n    while n < 3:\n        n += 1\n"),
        ("twice", "hip", "more blocks at a time", "__launch_bounds__(64, 1)", "__launch_bounds__(64, 4)"),
        ("matmul", "hip", "no barrier where none is needed", _BARRIER + "  int offs_k[4];", "  int offs_k[4];"),
        ("twice", "cpu", "tiles that threads take as they come", "schedule(static)", "schedule(dynamic)"),
    )  # fmt: skip
    return [
        Case(f"{name}, {place}", "it is so", kernel, place, edits=((old, new),))
        for kernel, place, name, old, new in rows
    ]


_ROWS = (
    ("twice", "triton", "rows that are said to be aligned", _OFFS, _OFFS + "    row = tl.multiple_of(m_at * K, 16)\n", "check", "says 16, which is not so", 10, "wider loads at the tuning size alone"),
    ("twice", "triton", "places that are said to follow each other", _OFFS, _OFFS + "    offs_k = tl.max_contiguous(offs_k % K, 128)\n", "check", "says 128, which is not so", 10, "a wide load goes on where the row does not"),
    ("twice", "triton", "places that are said to be alike", _OFFS, _OFFS + "    offs_k = tl.max_constancy(offs_k, 4)\n", "check", "says 4, which is not so", 10, "a quarter of the loads"),
    ("twice", "triton", "pointers that are said to be aligned", _OFFS, _OFFS + "    at = tl.multiple_of(x_ptr + m_at * K + offs_k, 16)\n", "check", "says 16, which is not so", 10, "wider loads at the tuning size alone"),
    ("twice", "triton", "a size that is assumed", _OFFS, _OFFS + "    tl.assume(K % 128 == 0)\n", "check", "Assume failed", 10, "it saves the mask"),
    ("twice", "triton", "a count in the output by a method", _Y, "    n = (y_ptr + m_at * K).atomic_add(1.0)\n" + _Y, "build", _RACE, 9, "a race for an element"),
    ("twice", "triton", "a count in the output by a keyword", _Y, "    n = tl.atomic_add(val=1.0, pointer=y_ptr + m_at * K)\n" + _Y, "build", _RACE, 9, "a race for an element"),
    ("twice", "triton", "a count beside a store by keywords", _STORE, "    tl.store(pointer=y_ptr + m_at * K + offs_k, value=y, mask=mask_k)\n    n = tl.atomic_add(y_ptr + m_at * K, 0.0)\n", "build", _RACE, 9, "a race for an element"),
    ("twice", "triton", "a row that the one before it writes first", _TILES, _TILES + "    last = tile + tiles_k < tl.num_programs(0)\n    ahead = tile % tiles_k * 128 + tl.arange(0, 128)\n    tl.store(y_ptr + (tile // tiles_k + 1) * K + ahead, 0.0, mask=(ahead < K) & last)\n", "check", "differs between two runs|output `y`", 9, "a lucky order hides it"),
    ("twice", "triton", "one row of many", _Y, "    y = x * tl.where(m_at == 113, 1.0, 2.0)\n", "check", "output `y`", 5, "no check size has it"),
    ("twice", "hip", "a row that the one before it writes first", _HIP_STORES, _HIP_AFTER + _HIP_STORES, "check", "order in which work-items run|output `y`", 9, "a lucky order hides it"),
    ("twice", "hip", "rows that are taken for aligned", _HIP_LOADS, "for (int k_i = 0; k_i < 2; k_i += 2)\n    load<2>", "check", "out of bounds|unaligned", 10, "wider loads at the tuning size alone"),
    ("twice", "hip", "a mask that is left out", "(offs_k[k_i] < K) | EVEN_K", "true", "check", "out of bounds", 10, "it saves the mask"),
    ("twice", "hip", "one row of many", "x[k_i] * 2.0f", "x[k_i] * (m_at == 113 ? 1.0f : 2.0f)", "check", "output `y`", 5, "no check size has it"),
    ("matmul_bf16", "hip", "a barrier that is left out", _BARRIER, "", "check", "race|uninitialised", 9, "a lucky order hides it"),
    ("twice", "cpu", "what the last tile left", _LOADED, _LOADED.replace(";", " + 0.5f * y_t(m_i * 16 + k_i);"), "check", "output `y`", 9, "memory of a thread is not its own for long"),
    ("twice", "cpu", "a read beyond an input", _TWO, _TWO + " + 0.0f * x_g(M * K + m_i)", "check", "not written|reads outside", 1, "it reads what is not its own"),
    ("twice", "cpu", "one thread for all", "num_threads(least(args.threads, count))", "num_threads(64)", "build", "some pragmas", 1, "threads that nobody gave it"),
    ("twice", "cpu", "threads that do not wait", "schedule(static)", "schedule(static) nowait", "build", "some pragmas", 9, "work that is not done when it returns"),
    ("long", "cpu", "a twentieth of the rows", "* 2.0f)", "* (M == 4096 && m_i >= 1000 && m_i < 1205 ? 1.0f : 2.0f))", "check", "at M=4096", 5, "of large results some rows are compared"),
    ("twice", "npu", "a tile that the one before it writes first", _PE_STORE, "    if (k_at + 32 <= K) co_await pe.store(y_g, {Slice{m_at, axis::m, m_n}, Slice{k_at + 16, axis::k, 16}}, x_t.tile());\n" + _PE_STORE, "check", "another PE has stored", 9, "a lucky order hides it"),
    ("twice", "npu", "what the last tile left", _PE_LOAD, "    if (k_at < 16) co_await pe.load(x_t.next()", "check", "never written", 9, "it saves the loads"),
    ("twice", "npu", "a box of one column", _BOX, "{axis::k, 1}};", "check", "never written", 10, "less work"),
    ("twice", "npu", "a box beyond its buffer", _BOX, "{axis::k, 1 << 20}};", "check", "exceeds buffer", 1, "it reaches memory"),
)  # fmt: skip
