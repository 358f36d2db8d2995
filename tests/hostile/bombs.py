"""Sources that admission lets through, and that a compiler or a run would never end at, or that take all
memory: an evaluation must end them. By backend: a place in the emitted source, the text before it.
For tests."""

from __future__ import annotations

import pytest

_DEEP = "(" * 4000 + "1" + ")" * 4000
_LONG = " + ".join(["1"] * 60_000)


def _nested(head: str, depth: int, indent: str = "") -> str:
    """Loops within loops, by the head of one, in which `#` is its number."""
    return "".join(head.replace("#", str(n)) + indent for n in range(depth))


_PYTHON_LOOPS = "".join("    " * (n + 1) + f"for v{n} in tl.static_range(64):\n" for n in range(6))
_CUTE_LOOPS = "".join(
    "    " * (n + 1) + f"for v{n} in cutlass.range_constexpr(64):\n" for n in range(6)
)
_UNROLLED = "#pragma unroll\nfor (int n# = 0; n# < 4096; ++n#) "
_C_DEVICE = {
    "a loop without end": "for (int n = 0; n < 1; n = 0) y_ptr[n] = 1.0f;",
    "an array larger than memory": "float big[1 << 29]; big[K] = 1.0f; y_ptr[0] = big[K / 2];",
    "loops that explode when unrolled": f"float t = 1.0f; {_nested(_UNROLLED, 4)} t = t * 1.5f + K;\n"
    "  y_ptr[0] = t;",
    "a deep expression": f"y_ptr[0] = {_DEEP};",
    "a long expression": f"y_ptr[0] = {_LONG};",
}
BOMBS = {
    "sim": (
        "  for (Index tile = pe.id()",
        {
            "a loop without end": "  for (Index n = 0; n < 1; n = 0) {}\n",
            "a loop of commands": "  for (;;) co_await pe.barrier();\n",
            "a barrier of some": "  if (pe.id() == 0) co_await pe.barrier();\n",
            "a wait for what nobody sends": "  co_await pe.receive(x_t.next(), 0);\n",
            "a buffer larger than memory": '  Buffer z_t = pe.buffer("z", Dtype::f32, '
            "{{axis::m, 1LL << 40}, {axis::k, 1LL << 40}}, 2);\n",
            "numbers that overflow": '  Buffer z_t = pe.buffer("z", Dtype::f32, '
            "{{axis::m, 1LL << 62}, {axis::k, 4}}, 2);\n",
            "a box of negative lengths": "  co_await pe.map(Op::mul, y_t.next(), {x_t.tile(), 2.0}, "
            "Box{{axis::m, -5}, {axis::k, -7}});\n",
            "a deep expression": f"  const Index deep = {_DEEP};\n  if (deep > 1) co_return;\n"
            "  for (;;) {}\n",
            "loops in loops": "  "
            + _nested("for (Index n# = 0; n# < 1 << 30; n# += 1) ", 12)
            + "co_await pe.barrier();\n",
            "an argument that is not there": "  const Index far = args.size(1 << 30);\n"
            "  if (far > 0) co_return;\n",
        },
    ),
    "cpp": (
        "    Arena arena;",
        {
            "a loop without end": "    for (Index n = 0; n < 1; n = 0) args.array<float>(1)(n) = 1.0f;\n",
            "memory": "    Arena more; for (Index n = 0; n < 64; ++n) { const Array<float> z = "
            "more.take<float>(1 << 28); for (Index i = 0; i < 1 << 28; ++i) z(i) = 1.0f; }\n",
            "more than all memory": "    Arena more; const Array<float> z = more.take<float>(1LL << 60); "
            "z(0) = 1.0f;\n",
            "a size that overflows": "    Arena more; const Array<float> z = "
            "more.take<float>(1LL << 62); z(-(1LL << 40)) = 1.0f;\n",
            "a store far beyond": "    args.array<float>(1)(1LL << 44) = 1.0f;\n",
            "a store just before": "    args.array<float>(1)(-1) = 1.0f;\n",
            "an argument that is not there": "    args.array<float>(1 << 20)(0) = 1.0f;\n",
            "loops in loops": "    "
            + _nested("for (Index n# = 0; n# < 1 << 30; ++n#) ", 12)
            + "args.array<float>(1)(n1) = 1.0f;\n",
        },
    ),
    "cuda": ("  const int m_at = tile;", {n: f"  {t}\n" for n, t in _C_DEVICE.items()}),
    "hip": ("  const int m_at = tile", {n: f"  {t}\n" for n, t in _C_DEVICE.items()}),
    "triton": (
        "    tile = tl.program_id(0)\n",
        {
            "a loop without end": "    while True:\n        tl.store(y_ptr, 1.0)\n",
            "a range without end": "    for n in range(0, 1 << 62):\n        tl.store(y_ptr, 1.0)\n",
            "a static range": "    for n in tl.static_range(1 << 24):\n        tl.store(y_ptr + n % 2, 1.0)\n",
            "static ranges in static ranges": f"{_PYTHON_LOOPS}{'    ' * 7}tl.store(y_ptr, 1.0)\n",
            "a block larger than memory": "    tl.store(y_ptr + tl.arange(0, 1 << 36), 1.0)\n",
            "a power of powers": "    big = 9 ** 9 ** 9\n",
            "a text of all memory": "    big = 'x' * (1 << 40)\n",
            "a deep expression": f"    big = {'-' * 80}1\n    while True:\n        big += 1\n",
            "a store far beyond": "    tl.store(y_ptr + (1 << 40), 1.0)\n",
        },
    ),
    "cutedsl": (
        "    m_at = Int32(tile)\n",
        {
            "a range of the compiler": "    z = Int32(0)\n    for n in cutlass.range_constexpr(1 << 30):\n"
            "        z = z + n\n",
            "ranges in ranges": f"    z = Int32(0)\n{_CUTE_LOOPS}{'    ' * 7}z = z + 1\n",
            "a list of all memory": "    z = [n for n in cutlass.range_constexpr(1 << 40)]\n",
            "lists of lists": "    z = [0] * (1 << 40)\n",
            "a power of powers": "    z = 9 ** 9 ** 9\n",
            "a tensor larger than memory": "    z = cute.make_rmem_tensor(1 << 40, Float32)\n",
            "a layout that explodes": "    z = cute.make_layout((1 << 40, 1 << 40), stride=(1 << 60, 1))\n",
            "a loop without steps": "    for n in cutlass.range(0, 10, 0, unroll_full=True):\n"
            "        m_at = tile\n",
        },
    ),
}
CASES = [
    pytest.param(n, what, id=f"{n}: {what}") for n, (_, texts) in BOMBS.items() for what in texts
]
