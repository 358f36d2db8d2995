"""Cheats by sources that admission may pass: launches, host code, races, accesses beside tensors. For
tests."""

from __future__ import annotations

from tests.cheats.case import Case

_Y = "    y = x * 2.0\n"
_GRID = "twice_0[(M * triton.cdiv(K, 128),)]"
_SIZES = "    M = x.shape[0]\n    K = x.shape[1]\n    twice_0"
_WRAPPER = "    launch(x, y)\n    return y\n"
_TWO = "y_t(m_i * 16 + k_i) = (x_t(m_i * 16 + k_i) * 2.0f);"
_STORED = "y_g((m_at + m_i) * K + k_at + k_i) = y_t(m_i * 16 + k_i);"
_TILES = "Index tile = pe.id(); tile < count; tile += pe.count()"


def cheats() -> list[Case]:
    """All of them."""
    return [
        Case(f"{name}, {place}", why, "twice", place, "", ((old, new),), stage, said, group)
        for place, name, old, new, stage, said, group, why in _ROWS
    ]


_ROWS = (
    (
        "triton",
        "a launch that ends early",
        _SIZES,
        _SIZES.replace("    twice_0", "    if K > 100:\n        return\n    twice_0"),
        "build",
        "launches no kernel",
        10,
        "it does nothing at large sizes",
    ),
    (
        "triton",
        "a launch that ends early between the known sizes",
        _SIZES,
        _SIZES.replace("    twice_0", "    if 64 < K < 520:\n        return\n    twice_0"),
        "check",
        "not written",
        5,
        "it does nothing at sizes that are drawn",
    ),
    (
        "triton",
        "a launch on half of the grid",
        _GRID,
        "twice_0[(M // 2 * triton.cdiv(K, 128),)]",
        "check",
        "not written",
        10,
        "half of the work",
    ),
    (
        "triton",
        "a wrapper that launches nothing",
        _WRAPPER,
        "    return y\n",
        "build",
        "functions that are emitted",
        10,
        "users call it, and no evaluation does",
    ),
    (
        "triton",
        "a wrapper that gives its input back",
        _WRAPPER,
        "    launch(x, y)\n    return x\n",
        "build",
        "functions that are emitted",
        10,
        "users call it, and no evaluation does",
    ),
    (
        "triton",
        "a function that nothing calls",
        "def launch(",
        "def spare(x):\n    return x\n\n\ndef launch(",
        "build",
        "functions that are emitted",
        2,
        "no evaluation runs it",
    ),
    (
        "triton",
        "a second kernel of the same name",
        "@triton.jit\ndef",
        "@triton.jit\ndef twice_0(x_ptr, y_ptr, K, EVEN_K: tl.constexpr):\n    pass\n\n\n@triton.jit\ndef",
        "build",
        "stands for one thing",
        2,
        "one reader takes the first, another the last",
    ),
    (
        "triton",
        "a number by the name of a function",
        "@triton.jit\n",
        "min = 3\n\n\n@triton.jit\n",
        "build",
        "stands for one thing",
        2,
        "a reader of the launch takes the function, Python the number",
    ),
    (
        "triton",
        "a read beyond an input, times 0",
        _Y,
        "    y = x * 2.0 + 0.0 * tl.load(x_ptr + 100000000 + offs_k)\n",
        "check",
        "reads outside `x`|illegal memory access",
        1,
        "it reads what is not its own",
    ),
    (
        "triton",
        "a constant that lies about its mask",
        "EVEN_K=K % 128 == 0",
        "EVEN_K=True",
        "check",
        "outside `x`",
        1,
        "it saves the mask",
    ),
    (
        "triton",
        "a choice by what another program wrote",
        _Y,
        "    z = tl.load(y_ptr + (m_at - 1) * K + offs_k, mask=mask_k & (m_at > 0), other=0.0)\n"
        "    y = tl.where(z == z, x * 2.0, 0.0)\n",
        "check",
        "output `y`",
        9,
        "it depends on the order of programs",
    ),
    (
        "triton",
        "a count in the output",
        _Y,
        "    n = tl.atomic_add(y_ptr + m_at * K, 1.0)\n" + _Y,
        "build",
        "stores `y_ptr` or adds to it",
        9,
        "a race for an element",
    ),
    (
        "npu",
        "each element stores all tiles",
        _TILES,
        "Index tile = 0; tile < count; tile += 1",
        "check",
        "which another PE has stored",
        9,
        "they race, though with equal values",
    ),
    (
        "npu",
        "the first element alone",
        "if (pe.id() >= count) co_return;",
        "if (pe.id() >= 1) co_return;",
        "check",
        "not written",
        10,
        "less work",
    ),
    (
        "npu",
        "an output instead of an input",
        "co_await pe.load(x_t.next(), x_g,",
        "co_await pe.load(x_t.next(), y_g,",
        "check",
        "not written",
        9,
        "it waits for somebody else's result",
    ),
    (
        "npu",
        "an extent below zero",
        "least(16, K - k_at)",
        "least(-16, K - k_at)",
        "check",
        "extent -",
        1,
        "it leaves the tensor",
    ),
    (
        "cpu",
        "an element that threads race for",
        _TWO,
        "y_g(0) = (x_t(m_i * 16 + k_i) * 2.0f);\n          y_t(m_i * 16 + k_i) = y_g(0);",
        "check",
        "output `y`",
        9,
        "threads overwrite each other's results",
    ),
    (
        "cpu",
        "a store just behind the output",
        _STORED,
        _STORED + "\n          y_g(M * K) = 0.0f;",
        "check",
        "writes outside `y`",
        1,
        "it writes what is not its own",
    ),
    (
        "cpu",
        "wrong at the tuning size",
        "* 2.0f)",
        "* (M == 160 ? 1.0f : 2.0f))",
        "check",
        "at M=160, K=520",
        5,
        "it is right wherever a run is cheap",
    ),
    (
        "hip",
        "registers that are not set",
        "y[k_i] = x[k_i] * 2.0f;",
        "y[k_i] = x[k_i] * 2.0f + 0.0f * y[k_i];",
        "check",
        "not written",
        10,
        "whatever is there becomes a result",
    ),
    (
        "hip",
        "a barrier that some threads do not reach",
        "const int m_at = tile / tiles_k;",
        "const int m_at = tile / tiles_k;\n  if (thread < 3) __syncthreads();",
        "check",
        "divergent barrier",
        9,
        "a device may wait for ever",
    ),
)
