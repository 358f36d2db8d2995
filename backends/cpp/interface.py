"""The description of sources for the local CPU, from the admission and the headers."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from backends.cpp.admission import RULES
from backends.shared.admission import WORDS
from backends.shared.declarations import declared, listed
from backends.shared.host import PRELUDE
from backends.shared.words import FUNCTIONS, TYPES

_INLINE = re.compile(r"^(?:template <[^>]*>\n)?inline [\w<>:, ]+? (\w+)\(", re.MULTILINE)
_MACRO = re.compile(r"^[A-Z]+_?\w*\((\w+),", re.MULTILINE)
HEADERS = (Path(__file__).parent / "kernel.h", PRELUDE / "launch.h", PRELUDE / "functions.h")
# The parts of the headers' types that kernels use. A test compiles it.
TYPES_IN_WORDS = """\
args.size(n)             // the n-th size, an Index (64 bits)
args.array<T>(n)         // the n-th tensor, an Array<T>; args.threads: the most threads
array(at)                // an element of an Array<T>, to read or to write; the index is row-major
Arena arena;             // of a thread: local tiles
arena.take<T>(count)     // an Array<T> of so many elements
Product<E> p(m, n, k);   // a matmul in vectors: p.c(m, n) = sum of p.a(m, k) * p.b(k, n), E f32 or bf16, sums in f32
p.a(m, k) = x;           // fill both operands, then
p.run();                 // compute, and read p.c(m, n), or
p.run(array, at, row, accumulate);  // write, or add, the rows of c to an array from `at` on, `row` apart"""


@cache
def interface() -> str:
    """The description, in Markdown without a title."""
    kernel, launch, functions = (file.read_text(encoding="utf-8") for file in HEADERS)
    names = FUNCTIONS - {"KERNEL"}
    declarations = "\n".join((declared(launch, names), declared(kernel, {"first_thread"})))
    inside = functions.partition("namespace fn {")[2]
    of_fn = {*_INLINE.findall(inside), *_MACRO.findall(inside)}
    called = (RULES.called or frozenset()) - TYPES - FUNCTIONS
    return f"""\
The source is C++20 with OpenMP: one function `KERNEL(name)` for each launch, whose names and arguments \
stay as they are. The text is checked before it is compiled:

- Directives are `{RULES.include}` and pragmas of the form `{RULES.directives}`.
- Outside of kernels there are constants (`constexpr`). Nothing outlives a launch.
- Types are {listed(RULES.types - {"const"})}. Values of {listed(RULES.made)} are made by the interface.
- Nothing is called but the functions below, all of `fn::`, values of {listed(RULES.callable_types)}, \
and {listed(called)}. There are no functions, lambdas or templates of your own.
- No pointer, subscript, cast, character or macro, and none of the words {listed(WORDS)}; the members \
{listed(RULES.members)} are not named.
- That indices stay within tiles and tensors is yours to keep; what is written just beside a tensor is \
seen when it runs.

## The interface

```c++
{TYPES_IN_WORDS}

{declarations}
```

`fn::`, of numbers: {listed(of_fn)}."""
