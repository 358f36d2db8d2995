"""Cheats by sources: texts that reach beyond what a kernel may use. For tests."""

from __future__ import annotations

from collections.abc import Iterator

from tests.cheats.case import Case

_TILES = "const Index count = "  # in a kernel's body, of C++ for npu and cpu
_ADMITTED = "is not for a kernel"


def cheats() -> list[Case]:
    """All of them."""
    return list(_all())


def _all() -> Iterator[Case]:
    for name, old, new, why in _NPU:
        yield Case(f"{name}, npu", why, "twice", "npu", "", ((old, new),), "build", _ADMITTED, 1)
    for name, new, why in _CPP:
        edits = ((_TILES, new + "\n  " + _TILES),)
        yield Case(f"{name}, cpu", why, "twice", "cpu", "", edits, "build", _ADMITTED, 1)
    for name, old, new, why in _TRITON:
        yield Case(
            f"{name}, triton", why, "twice", "triton", "", ((old, new),), "build", _ADMITTED, 2
        )
    for name, old, new, why in _HIP:
        yield Case(f"{name}, hip", why, "twice", "hip", "", ((old, new),), "build", "", 1)
    for place, name, old, new, said, why, group in _RUN:
        yield Case(f"{name}, {place}", why, "twice", place, "", ((old, new),), "check", said, group)


def _inserted(text: str) -> tuple[str, str]:
    return _TILES, text + "\n  " + _TILES


_NPU = tuple(
    (name, *_inserted(text), why)
    for name, text, why in (
        ("a pointer", "int* p = nullptr;", "it reaches memory"),
        ("a cast to a pointer", "auto p = (long*)8;", "it reaches the simulator's memory"),
        ("an alias of a pointer", "using P = long*;", "it reaches memory"),
        ("an address", "auto p = &pe;", "it reaches the processing element"),
        ("a subscript", "Index z = 0[0];", "it reaches memory"),
        ("a reference", "Index& z = count;", "it changes what others hold"),
        ("a template", "template <class T> struct S;", "it makes types"),
        ("a union", "union U { long a; double b; };", "it changes bits into others"),
        ("static memory", "static Index kept = 0;", "it keeps what it computed"),
        ("thread memory", "thread_local Index kept = 0;", "it keeps what it computed"),
        ("assembly", 'asm("nop");', "it does anything"),
        ("a builtin", "__builtin_trap();", "it does anything"),
        ("a digraph", "Index z <: 1 :>;", "another spelling of a subscript"),
        ("a trigraph", "Index z ??( 1 ??);", "another spelling of a subscript"),
        ("the standard library", "std::exit(0);", "it ends the simulator"),
        ("a lambda", "auto f = [] { return 1; };", "it captures"),
        ("new memory", "auto p = new long;", "it takes memory"),
        ("goto", "here: goto here;", "control beyond loops"),
        ("a cast of constness", "const_cast<Index>(count);", "it changes constants"),
        ("the simulator's slot", "auto z = x_t.slot;", "a member of the interface's own"),
    )
) + (
    ("a continued comment", _TILES, "// \\\n  system(0);\n  " + _TILES, "a hidden line"),
    ("a directive behind a comment", _TILES, "/**/#define K 1\n  " + _TILES, "a hidden directive"),
    ("a macro", "using namespace device;", "using namespace device;\n#define co_return", "a macro"),
    (
        "an include",
        "using namespace device;",
        "#include <cstdlib>\nusing namespace device;",
        "a library",
    ),
    (
        "a namespace",
        "using namespace device;",
        "using namespace device;\nusing namespace std;",
        "a library",
    ),
    ("a variable outside", "namespace {", "namespace {\nlong kept = 0;", "it outlives the kernel"),
    ("a function outside", "namespace {", "namespace {\nlong f() { return 0; }", "it is no kernel"),
)
_CPP = (
    ("a pointer", "float* p = nullptr;", "it reaches memory"),
    ("an address", "auto p = &args;", "it reaches the arguments"),
    ("a subscript", "Index z = 0[0];", "it reaches memory"),
    ("static memory", "static Index kept = 0;", "it keeps what it computed"),
    ("a library", "std::exit(0);", "it ends the process"),
    ("a call", "system(0);", "it runs a program"),
    ("a clock", "auto now = clock_gettime(0, 0);", "it finds out when it is timed"),
    ("assembly", 'asm("nop");', "it does anything"),
    ("raw data", "auto p = args.data;", "a member of the interface's own"),
    ("a lambda", "auto f = [] { return 1; };", "it captures"),
    ("a thread", "thread_local Index kept = 0;", "it keeps what it computed"),
)
_HEAD = "import torch\n"
_BODY = "    K = x.shape[1]\n"
_TRITON = tuple(
    (name, _HEAD, text + _HEAD, why)
    for name, text, why in (
        ("exec", "exec('1')\n", "it runs any text"),
        ("an import", "import os\n", "it reaches the system"),
        ("an import from", "from os import system\n", "it reaches the system"),
        ("a call that is negated", "zero = not exec('1')\n", "it runs any text"),
        ("a comprehension", "zero = [exec for exec in (print,)]\n", "it shadows a name"),
        ("a lambda", "f = lambda: 0\n", "it is no kernel"),
        ("a class", "class K:\n    pass\n", "it is no kernel"),
        ("a global list", "kept = []\n", "it keeps what it computed"),
        ("a decorator", "@print\ndef f():\n    pass\n", "it runs when it is loaded"),
        ("a default", "def f(a=print('x')):\n    pass\n", "it runs when it is loaded"),
        ("an annotation", "def f(a: print('x')):\n    pass\n", "it runs when it is loaded"),
    )
) + tuple(
    (name, _BODY, _BODY + text, why)
    for name, text, why in (
        ("torch computes", "    return torch.mul(x, 2.0, out=y)\n", "a library does the work"),
        ("an operator on tensors", "    y = x * 2.0\n", "a library does the work"),
        ("a method of a tensor", "    y.copy_(x)\n", "a library does the work"),
        ("an augmented tensor", "    y += x\n", "a library does the work"),
        ("a matrix product", "    z = x @ x\n", "a library does the work"),
        ("builtins by attributes", "    tl.core.builtins.exec('1')\n", "it runs any text"),
        ("a dunder", "    x.__class__\n", "it reaches the interpreter"),
        ("a file", "    open('/etc/passwd')\n", "it reads files"),
        ("a data pointer", "    p = x.data_ptr()\n", "it reaches memory"),
        ("a global name", "    global kept\n", "it keeps what it computed"),
        ("inline assembly", "    tl.inline_asm_elementwise('nop')\n", "it does anything"),
    )
)
_LAUNCH = "  const int m_at = tile / tiles_k;"
_HIP = tuple(
    (name, _LAUNCH, text + "\n" + _LAUNCH, why)
    for name, text, why in (
        ("assembly", '  asm volatile("s_nop 0");', "it does anything"),
        ("static memory", "  static int kept = 0;", "it keeps what it computed"),
        ("a clock", "  long long now = clock64();", "it finds out when it is timed"),
        ("a system call", "  system(0);", "it runs a program"),
        ("printing", '  printf("x");', "it writes where results are read"),
        ("a macro", "#define K 1", "it changes what is read"),
        ("an include", "#include <cstdlib>", "a library"),
        (
            "a store into an input",
            "  store<1>((float*)x_ptr + thread, &thread, true);",
            "it changes inputs",
        ),
        ("memory of a pointer", "  *(float*)8 = 1.0f;", "it reaches memory"),
    )
)
_STORE = "co_await pe.store(y_g, {Slice{m_at, axis::m, m_n}"
_RUN = (
    (
        "npu",
        "a store into an input",
        _STORE,
        "co_await pe.store(x_g, {Slice{m_at, axis::m, m_n}, Slice{k_at, axis::k, k_n}}, y_t.tile());\n"
        "    " + _STORE,
        "is an input; a kernel does not change it",
        "it changes what is compared",
        9,
    ),
    (
        "npu",
        "a store out of bounds",
        _STORE,
        "co_await pe.store(y_g, {Slice{m_at + 100000, axis::m, m_n}",
        "",
        "it writes elsewhere",
        1,
    ),
    ("npu", "nothing is stored", _STORE, "if (tile < 0) " + _STORE, "not written", "no work", 10),
    (
        "npu",
        "half of the tiles",
        "tile += pe.count()",
        "tile += 2 * pe.count()",
        "output `y`",
        "half of the work",
        10,
    ),
    (
        "npu",
        "an argument that is not there",
        "args.size(1)",
        "args.size(100000)",
        "",
        "it reads beyond the arguments",
        1,
    ),
    (
        "cpu",
        "a store into an input",
        "y_g((m_at + m_i) * K + k_at + k_i) = y_t(m_i * 16 + k_i);",
        "y_g((m_at + m_i) * K + k_at + k_i) = y_t(m_i * 16 + k_i);\n"
        "          x_g((m_at + m_i) * K + k_at + k_i) = 0.0f;",
        "",
        "it changes what is compared",
        9,
    ),
    (
        "cpu",
        "nothing is stored",
        "m_i < m_n; ++m_i) {\n#pragma omp simd\n        "
        "for (Index k_i = 0; k_i < k_n; ++k_i) {\n          y_g(",
        "m_i < 0; ++m_i) {\n#pragma omp simd\n        "
        "for (Index k_i = 0; k_i < k_n; ++k_i) {\n          y_g(",
        "not written",
        "no work",
        10,
    ),
    (
        "cpu",
        "what is there already stays",
        "y_g((m_at + m_i) * K + k_at + k_i) = y_t(m_i * 16 + k_i);",
        "y_g((m_at + m_i) * K + k_at + k_i) = y_g((m_at + m_i) * K + k_at + k_i);",
        "not written",
        "it waits for somebody else's result",
        10,
    ),
    (
        "triton",
        "nothing is stored",
        "tl.store(y_ptr + m_at * K + offs_k, y, mask=mask_k)",
        "tl.store(y_ptr + m_at * K + offs_k, y, mask=mask_k & (m_at < 0))",
        "not written",
        "no work",
        10,
    ),
    (
        "triton",
        "a store into an input",
        "    tl.store(y_ptr",
        "    tl.store(x_ptr + m_at * K + offs_k, y, mask=mask_k)\n    tl.store(y_ptr",
        "writes to its input|changed its input",  # by the interpreter, and on a device
        "it changes what is compared",
        9,
    ),
    (
        "triton",
        "listed sizes",
        "    y = x * 2.0\n",
        "    y = x * tl.where((K == 33) | (K == 64), 2.0, 1.0)\n",
        "output `y`",
        "it is right at the listed K alone",
        5,
    ),
    (
        "triton",
        "wrong at the tuning size",
        "    y = x * 2.0\n",
        "    y = x * tl.where(K == 520, 1.0, 2.0)\n",
        "at M=160, K=520",
        "it is right wherever a run is cheap",
        5,
    ),
    (
        "hip",
        "wrong at the tuning size",
        "x[k_i] * 2.0f",
        "x[k_i] * (K == 520 ? 1.0f : 2.0f)",
        "at M=160, K=520",
        "it is right wherever a run is cheap",
        5,
    ),
    (
        "hip",
        "nothing is stored",
        "&y[k_i], mask_k[k_i]);",
        "&y[k_i], mask_k[k_i] & (m_at < 0));",
        "not written",
        "no work",
        10,
    ),
    (
        "hip",
        "listed sizes",
        "x[k_i] * 2.0f",
        "x[k_i] * (K == 33 || K == 64 ? 2.0f : 1.0f)",
        "output `y`",
        "it is right at the listed K alone",
        5,
    ),
)
