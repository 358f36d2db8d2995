"""The description of C++ sources for the local CPU is complete."""

import re

from backends.cpp.admission import RULES, require_admissible
from backends.cpp.interface import TYPES_IN_WORDS
from backends.registry import backend, target
from backends.shared.compiler import Compiler

TEXT = backend("cpp").interface(target("cpu"))
KERNEL = """#include "kernel.h"
KERNEL(twice_0_launch) {
  const Index M = args.size(0), N = args.size(1);
  Arena arena;
  const Array<float> x_g = args.array<float>(0);
  const Array<float> y_g = args.array<float>(1);
  const Array<float> x_t = arena.take<float>(M * N);
  for (Index i = 0; i < M * N; ++i) x_t(i) = fn::maximum(x_g(i), 0.0f);
  const Product<float> p(M, M, N);
  for (Index m = 0; m < M; ++m) {
    for (Index n = 0; n < N; ++n) {
      p.a(m, n) = x_t(m * N + n);
      p.b(n, m) = x_t(m * N + n);
    }
  }
  p.run();
  const float first = p.c(0, 0);
  p.run(y_g, 0, M, false);
  y_g(0) = first;
}
"""


def test_every_function_that_is_admitted_is_told():
    for name in RULES.called:
        assert re.search(rf"\b{name}\b", TEXT), name


def test_what_the_types_are_said_to_have_compiles(tmp_path):
    for call in re.findall(r"^(?:\w+\.)?(\w+)[<(]", TYPES_IN_WORDS, re.MULTILINE):
        assert call in KERNEL or call == "array", call
    require_admissible(KERNEL)
    own = backend("cpp")
    assert Compiler("g++", ("-std=c++20", "-O0", "-fopenmp", "-shared", "-fPIC")).build(
        KERNEL, tmp_path, "kernel.cc", own.include
    )
