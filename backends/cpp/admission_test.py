"""Emitted sources are admitted; sources that reach beyond a kernel's own numbers are not."""

import pytest

from backends.backend import BackendError
from backends.cpp.admission import require_admissible

HEAD = '#include "kernel.h"\n'
BODY = HEAD + "KERNEL(k) {{\n  const Array<float> x = args.array<float>(0);\n  {0}\n}}\n"
ADMITTED = (
    "x(0) = fn::exp(x(1)) * 2.0f;",
    "for (Index i = 0; i < args.size(0); ++i) x(i) = float(i & 1);",
    "Arena arena; const Array<bf16> t = arena.take<bf16>(4); t(0) = bf16(1.0f);",
    "const Product<float> p(1, 2, 3); p.a(0, 0) = 1.0f; p.run(); x(0) = p.c(0, 0);",
    "Index n = 0;\n#pragma omp simd reduction(+ : n)\n  for (Index i = 0; i < 9; ++i) n = n + i;",
)
REFUSED = (
    'system("true");',
    "abort();",
    "free(0);",
    "omp_set_num_threads(64);",
    "fn::detail::free(0);",
    "x.data = x.data;",
    "auto p = &x;",
    "float* p = 0;",
    "auto f = [] { return 0; };",
    "static float kept = 0;",
    "const Array<float> y{};",
    "Array<float> y;",
    "auto y = Array<float>{};",
    "const Args own{};",
    "auto t = args.tensors;",
    'asm("nop");',
    "__builtin_trap();",
    "product_blocks[0].reserve(1);",
    "Index a;\n#pragma GCC optimize 3",
    "Index a;\n#define x y",
)


@pytest.mark.parametrize("line", ADMITTED)
def test_numbers_tiles_products_and_loops_are_admitted(line):
    require_admissible(BODY.format(line))


@pytest.mark.parametrize("line", REFUSED)
def test_what_reaches_beyond_a_kernel_is_refused_with_its_line(line):
    with pytest.raises(BackendError, match=r"^line [45]: .* is not for a kernel") as caught:
        require_admissible(BODY.format(line))
    assert caught.value.stage == "build"


@pytest.mark.parametrize(
    "line", ["float kept = 0;", "namespace a { int b; }", "#include <stdio.h>", "void f() {}"]
)
def test_nothing_outlives_a_kernel_and_nothing_else_is_included(line):
    with pytest.raises(BackendError, match="line 2"):
        require_admissible(HEAD + line + "\nKERNEL(k) {}\n")
