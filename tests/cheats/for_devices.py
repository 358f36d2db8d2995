"""Cheats and oddities that only a device shows: edited sources of the languages that run on one. For
tests."""

from __future__ import annotations

from collections.abc import Iterator

from tests.cheats.case import Case

_ADMITTED = "is not for a kernel"
_AT = "  const int m_at = tile;\n"  # of the kernel `twice`, in CUDA C++ for NVIDIA's chips
_DOUBLED = "x[k_i] * 2.0f"
_MASKED = "&y[k_i], mask_k[k_i]);"
_STORED = "tl.store(y_ptr + m_at * K + offs_k, y, mask=mask_k)"
_LOADED = "x = tl.load(x_ptr + m_at * K + offs_k, mask=mask_k, other=0.0)"
_COUNT = "num_warps=2"


def cheats() -> list[Case]:
    """All of them."""
    return [*_admitted(), *_run()]


def honest() -> list[Case]:
    """Oddities that are accepted."""
    why = "it says the same"
    rows = (
        ("cuda", "an addition", _DOUBLED, "x[k_i] + x[k_i]"),
        ("cuda", "a comment", _AT, "  // asm volatile, clock64(), *p\n" + _AT),
        ("cuda", "an unused number", _AT, "  const int spare = K & ~31;\n" + _AT),
        ("cuda", "two barriers", _AT, "  __syncthreads();\n  __syncthreads();\n" + _AT),
        ("cuda", "a branch on a size", _DOUBLED, "(K > 100 ? x[k_i] * 2.0f : x[k_i] + x[k_i])"),
        ("triton", "eight warps", _COUNT, "num_warps=8"),
        ("triton", "a store in two parts", _STORED, f"{_PART}"),
        ("triton", "a minimum of sizes", _LOADED, "K = tl.minimum(K, K)\n    " + _LOADED),
    )
    return [
        Case(f"{name} in a source for {place}, run", why, "twice", place, edits=((old, new),))
        for place, name, old, new in rows
    ]


_PART = (
    "tl.store(y_ptr + m_at * K + offs_k, y, mask=mask_k & (offs_k % 2 == 0))\n"
    "    tl.store(y_ptr + m_at * K + offs_k, y, mask=mask_k & (offs_k % 2 == 1))"
)


def _admitted() -> Iterator[Case]:
    for name, text, why in (
        ("assembly", '  asm volatile("exit;");\n', "it does anything"),
        ("a clock", "  long long now = clock64();\n", "it finds out when it is timed"),
        ("static memory", "  static int kept = 0;\n", "it keeps what it computed"),
        ("shared memory that stays", "  __shared__ float kept[64];\n", "another's values"),
        ("printing", '  printf("x");\n', "it writes where results are read"),
        ("a macro", "#define K 1\n", "it changes what is read"),
        ("an include", "#include <cstdio>\n", "a library"),
        ("a pointer", "  float* p = y_ptr;\n", "it reaches memory"),
        ("a cast of an input", "  store<1>((float*)x_ptr, &x[0], true);\n", "it changes inputs"),
        ("a number as an address", "  *(float*)8 = 1.0f;\n", "it reaches memory"),
        ("a launch", "  twice_0<<<1, 1>>>(x_ptr, y_ptr, K);\n", "work that nobody clocks"),
        ("new memory", "  float* p = new float[4];\n", "it takes memory"),
        ("a trap", "  __trap();\n", "it ends the context"),
        ("a long sleep", "  __nanosleep(1000000);\n", "it waits for somebody else's result"),
        ("a vote of a warp", "  __ballot_sync(~0u, true);\n", "a word that is not the interface's"),
    ):
        yield Case(
            f"{name}, cuda", why, "twice", "cuda", "", ((_AT, text + _AT),), "build", _ADMITTED, 1
        )


def _run() -> Iterator[Case]:
    rows = (
        ("cuda", "nothing is stored", _MASKED, "&y[k_i], mask_k[k_i] & (m_at < 0));", "not written", 10),
        ("cuda", "half of the rows", _AT, "  const int m_at = tile / 2 * 2;\n", "not written", 10),
        ("cuda", "the first 64 rows", _MASKED, "&y[k_i], mask_k[k_i] & (m_at < 64));", "not written", 5),
        ("cuda", "listed sizes", _DOUBLED, "x[k_i] * (K == 33 || K == 64 ? 2.0f : 1.0f)", "output `y`", 5),
        ("cuda", "wrong at the tuning size", _DOUBLED, "x[k_i] * (K == 520 ? 1.0f : 2.0f)", "K=520", 5),
        ("cuda", "a row of another", _AT, "  const int m_at = tile > 3 ? 3 : tile;\n", "not written", 10),
        ("cuda", "what is there stays", _DOUBLED, "y_ptr[m_at * K + offs_k[k_i] % K]", "not written", 10),
        ("cuda", "a result by 1e-6", _DOUBLED, "x[k_i] * 2.000002f", "output `y`", 7),
        ("cuda", "an element in a thousand", _DOUBLED, "x[k_i] * (offs_k[k_i] == 511 ? 1.0f : 2.0f)", "output `y`", 5),
        ("cuda", "a store far beyond", _MASKED, "&y[k_i] , mask_k[k_i]);\n  store<1>(y_ptr + 1000000000, &y[0], true);", "", 1),
        ("cuda", "a store before the beginning", _MASKED, "&y[k_i] , mask_k[k_i]);\n  store<1>(y_ptr - 1000000000, &y[0], true);", "", 1),
        ("cuda", "a store just before y", _MASKED, "&y[k_i] , mask_k[k_i]);\n  if (tile == 0) store<1>(y_ptr - 5, &y[0], true);", "writes outside `y`", 1),
        ("cuda", "zeros where the row is negative", _DOUBLED, "(x[0] < -2.0f ? 0.0f : x[k_i] * 2.0f)", "output `y`", 6),
        ("triton", "half of the rows", "    m_at = tile\n", "    m_at = tile // 2 * 2\n", "not written", 10),
        ("triton", "what is there stays", "    y = x * 2.0\n", "    y = tl.load(y_ptr + m_at * K + offs_k, mask=mask_k, other=0.0)\n", "not written", 10),
        ("triton", "a store far beyond", _STORED, _STORED + "\n    tl.store(y_ptr + 1000000000 + offs_k, y, mask=mask_k)", "", 1),
        ("triton", "in half of the bits", "    y = x * 2.0\n", "    y = (x * 2.0).to(tl.bfloat16).to(tl.float32)\n", "output `y`", 7),
        ("triton", "the first 64 rows", "mask=mask_k)\n\n\ndef launch", "mask=mask_k & (m_at < 64))\n\n\ndef launch", "not written", 5),
        ("triton", "an element in a thousand", "    y = x * 2.0\n", "    y = x * tl.where(offs_k == 511, 1.0, 2.0)\n", "output `y`", 5),
    )  # fmt: skip
    for place, name, old, new, said, group in rows:
        yield Case(
            f"{name}, {place}, run",
            "it does not do the work",
            "twice",
            place,
            "",
            ((old, new),),
            "check",
            said,
            group,
        )
