"""Emitted sources are admitted; sources that reach beyond the device are not."""

from pathlib import Path

import pytest

from backends.backend import BackendError
from backends.sim.admission import require_admissible

GOLDEN = sorted((Path(__file__).parent / "golden").glob("*.cc"))
HEAD = '#include "device.h"\nusing namespace device;\n'
BODY = HEAD + "KERNEL(k) {{\n  const Index n = args.size(0);\n  {0}\n  co_return;\n}}\n"


@pytest.mark.parametrize("file", GOLDEN, ids=[f.stem for f in GOLDEN])
def test_what_is_emitted_is_admitted(file):
    require_admissible(file.read_text())


ADMITTED = (
    "const Index m = n * 2 * (n + 1), l = pe.id() ^ 1;",
    'Buffer x = pe.buffer("x", Dtype::f32, {{0, n}}, 2);',
    "if (n > 1 && n != 3) co_return;",
    "Index m = 1; while (m < n) m *= 2; m &= 7;",
    "for (Index i = 0; i < n; i += 1) co_await pe.barrier();",
    "const double c = 1.5e-3 / __builtin_sqrt(double(n));",
    "// int* p = &n; a[0] in a comment",
)


@pytest.mark.parametrize("line", ADMITTED)
def test_numbers_tiles_commands_and_loops_are_admitted(line):
    require_admissible(BODY.format(line))


REFUSED = (
    "*(volatile int*)8 = 1;",
    "auto p = (Index*)(n);",
    "Index* p = 0;",
    "const Index* p = args.sizes;",
    "auto q = &n;",
    "auto q = bitand n;",
    "Index a[3];",
    "Index a<:3:>;",
    "Box b; b.at[99] = {0, 1};",
    "auto x = pe.load(t, g, {}); x.pe->id();",
    "auto t = Tile{7};",
    "t.offset = 9;",
    "t.slot += 1;",
    "static Index kept = 0;",
    "thread_local Index kept = 0;",
    "auto f = [n] { return n; };",
    "char* p = new char[1 << 26];",
    'asm("nop");',
    "std::abort();",
    "__builtin_trap();",
    "reinterpret_cast<long>(n);",
    "this_is_fine(); goto out;",
    "extern Index other;",
    "const auto s = 'x';",
    "Index b = *n;",
    "// spliced \\\n  Index a;",
    "struct Own { Index n; };",
)


@pytest.mark.parametrize("line", REFUSED)
def test_what_reaches_beyond_the_device_is_refused_with_its_line(line):
    with pytest.raises(BackendError, match=r"^line [45]: .* is not for a kernel") as caught:
        require_admissible(BODY.format(line))
    assert caught.value.stage == "build"


OUTSIDE = (
    "device::Index kept = 0;",
    "namespace { device::Index kept = 0; }",
    "using Index = int;",
    "#include <cstdio>",
    "#define pe other",
    "  # pragma once",
    'extern "C" int rand();',
    "template <class T> T own();",
)


@pytest.mark.parametrize("line", OUTSIDE)
def test_nothing_outlives_a_kernel_and_nothing_else_is_included(line):
    with pytest.raises(BackendError, match="line 3"):
        require_admissible(HEAD + line + "\nKERNEL(k) { co_return; }\n")


def test_constants_enums_and_namespaces_stand_outside():
    text = "namespace {\nconstexpr double inf = __builtin_inf();\n}\n"
    text += "namespace a {\nnamespace axis {\n"
    text += "enum : Axis { m, k };\n}\n}\nKERNEL(k) { co_return; }\nKERNEL(l) { co_return; }\n"
    require_admissible(HEAD + text)
