"""Describes in words what a Triton source may use, from the admission check and from Triton itself."""

from __future__ import annotations

import importlib
import inspect
from functools import cache
from pathlib import Path

from backends.shared.declarations import listed, used, whole
from backends.triton.build.admission import (
    BUILTINS,
    IMPORTS,
    LANGUAGE,
    OF_VALUES,
    ON_TENSORS,
    TORCH,
    TRITON,
)

NOTES = Path(__file__).parent / "notes"
_HIDDEN = ("_semantic", "_generator", "_builder")  # parameters that the compiler supplies


@cache
def interface() -> str:
    """The description in Markdown, without a title."""
    examples = used(NOTES, {f"tl.{name}" for name in LANGUAGE})
    calls = "\n".join(dict.fromkeys(examples[name] for name in sorted(examples)))
    declared = [f"tl.{name}{_signature(name)}" for name in sorted(LANGUAGE)]
    functions = "\n".join(line for line in declared if "(" in line)
    others = [line for line in declared if "(" not in line]
    return f"""\
The source is a Python module: kernels marked `@triton.jit`, and plain functions that launch them. \
`launch` takes the tensors in the order that it has now, and sizes come from their shapes. The text is \
checked before it is run:

- Imports are {"; ".join(f"`{line}`" for line in IMPORTS)}.
- Outside of functions there are numbers, as `NAME = 4` or `NAME = tl.constexpr(4)`, and a text.
- Nothing is kept from one call to the next: no assignment to an attribute or an element, no default \
that is no constant, no function in a function, no `try`, `with`, `class`, `yield` or `lambda`.
- A function that launches does not compute with tensors. Of torch there is {listed(TORCH)}; of a \
tensor {listed(ON_TENSORS)}; of triton {listed(TRITON)}; of Python {listed(BUILTINS)}. It passes its \
own parameters to kernels, and no other tensor.
- `_require`, which checks the inputs, stays as it is, letter by letter.
- In a kernel there are the functions below, `libdevice`'s, and of a value {listed(OF_VALUES)}. There \
is no inline assembly and no printing.
- Launch options beside the arguments: `num_warps`, `num_stages`, `maxnreg` (NVIDIA), `waves_per_eu`, \
`matrix_instr_nonkdim`, `kpack` (AMD). `@triton.autotune` is not admitted.
- The masks are yours: a load or store without one may reach beyond its tensor.

## Of `triton.language` (tl)

```text
{functions}
```
Types and values: {listed(others)}.

## An example

```python
{whole(NOTES, "def launch(")}```

Calls of other functions, from kernels that a test compiles:

```python
{calls}
```"""


def _signature(name: str) -> str:
    """The parameters of a function of the installed Triton; empty for other members, and for missing ones."""
    try:
        found = getattr(importlib.import_module("triton.language"), name, None)
        function = getattr(found, "fn", found)
        if isinstance(function, type) or not callable(function):
            return ""
        shown = inspect.signature(function)
    except (ImportError, ValueError, TypeError):
        return ""
    kept = [
        p.replace(annotation=inspect.Parameter.empty)
        for p in shown.parameters.values()
        if p.name not in _HIDDEN
    ]
    return str(shown.replace(parameters=kept, return_annotation=inspect.Signature.empty))
