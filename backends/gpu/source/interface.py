"""Describes in words what a source of C-like kernels may use, from the admission check and the headers."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path

from backends.gpu.source.admission import BANNED, CALLED, TYPES, Admission
from backends.shared.declarations import declared, listed, used, whole

PRELUDE = Path(__file__).parent / "prelude.h"
_CONTROL = frozenset("if for while switch return".split())
_OF_FN = re.compile(
    r"^OF_(?:FLOATS|NUMBERS)\((\w+)|^(?:template <[^>]*>\n)?inline [\w<>, ]+? (\w+)\(", re.MULTILINE
)

_HINT = re.compile(r"^(?:using \w+::|struct )(Evict\w+|Past\w+)\b", re.MULTILINE)


def interface(
    admission: Admission, headers: Collection[Path], others: Mapping[str, Path], notes: Path
) -> str:
    """The description in Markdown, without a title.

    headers: the language's own, which declare admitted functions.
    others: headers by namespace, whose functions they import.
    notes: documents with code blocks that tests compile.
    """
    names = (admission.called | CALLED) - TYPES - _CONTROL
    texts = [PRELUDE.read_text(encoding="utf-8")]
    texts += [header.read_text(encoding="utf-8") for header in headers]
    spaces = {name: file.read_text(encoding="utf-8") for name, file in others.items()}
    declarations = "\n".join(filter(None, (declared(t, names, spaces) for t in texts)))
    told = {name for name in names if re.search(rf"\b{name}\(", declarations)}
    examples = used(notes, told | {"__syncthreads"})
    lines = "\n".join(dict.fromkeys(examples[name] for name in sorted(examples)))
    includes = "` and `".join(admission.includes)
    return f"""\
The source has kernels alone: their names, parameters and launch bounds stay as they are, and so do the \
grid and the threads of a block. The text is checked before it is compiled:

- Directives are `{includes}`, `#ifndef NAME`, `#define NAME NUMBER`, `#endif` for constants as they \
are emitted, and `#pragma unroll`, with a number or without.
- Outside of kernels there is nothing: no function, variable or type of your own.
- A parameter matches `{admission.parameter}`.
- Types are {listed(TYPES)}, arrays of them, `auto`, and pointers into tensors and into shared memory \
(`T* const tile = shared_at<T>(byte);`), which are not cast.
- Nothing is called but the functions below, all of `fn::`, {listed(_CONTROL)} and `join`: a lambda of \
two numbers that captures nothing, for `scan`. Of words with two underscores there are \
{listed(admission.compiler)}; `threadIdx`, `blockIdx` and `gridDim` are there.
- None of {listed(BANNED)}; no assembly, text, character, member by pointer or attribute.
- The masks are yours: that indices stay within tensors and tiles is not checked before it runs.

## Functions

`fn::`, of numbers: {listed(_of_fn(texts[0]))}. A `Hint` to the caches is \
{listed({"NoHint", *_HINT.findall("".join(texts))})}.

```c++
{declarations}
```

## An example

```c++
{whole(notes, "__global__")}```

Calls of other functions, from kernels that a test compiles:

```c++
{lines}
```"""


def _of_fn(prelude: str) -> Collection[str]:
    """The functions of the namespace `fn`."""
    inside = prelude.partition("namespace fn {")[2].partition("}  // namespace fn")[0]
    found = {a or b for a, b in _OF_FN.findall(inside)}
    return {
        name for name in found if not name.startswith(("whole_", "float_", "rest_", "floor_of"))
    }
