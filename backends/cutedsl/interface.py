"""Describes what a CuTe DSL source may use, from the admission rules and the functions themselves."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from backends.cutedsl.admission import (
    CALLED,
    FUNCTIONS,
    IMPORTS,
    MEMBERS,
    OF_TENSORS,
    PARAMETERS,
    STRINGS,
    TYPES,
)
from backends.shared.declarations import listed, used
from backends.shared.signatures import signatures

HERE = Path(__file__).parent
_CONTROL = frozenset("range max min const_expr".split())


@cache
def interface() -> str:
    """The description in Markdown, without a title."""
    modules = sorted((HERE / "kernel").glob("*.py"))
    texts = {file.stem: file.read_text(encoding="utf-8") for file in modules}
    own = CALLED - TYPES - _CONTROL
    lines = [line for name, text in texts.items() for line in signatures(text, own)]
    of_fn = list(signatures(texts["functions"]))
    told = {line.partition("(")[0] for line in of_fn}
    elements = "\n".join(f"fn.{line}" for line in of_fn)
    members = "\n".join(f"- `{name}`: {listed(words)}" for name, words in MEMBERS.items())
    examples = used(HERE / "notes", {*own, *(w for words in MEMBERS.values() for w in words)})
    calls = "\n".join(dict.fromkeys(examples[name] for name in sorted(examples)))
    return f"""\
The source is a Python module with kernels alone. Their names and parameters stay as they are, and so do \
the grid and the threads of a block. The text is checked before it is imported:

- The imports are these, letter by letter: {"; ".join(f"`{line}`" for line in sorted(IMPORTS))}.
- Outside of kernels there are `NAME = number`, `NAME = True` and a text at the beginning.
- A kernel is marked `@cute.kernel` and nothing else. A parameter is a {listed(PARAMETERS)}, without a \
default.
- Statements are assignments, calls, `for`, `if`, `pass`. There is no `while`, `return`, `def`, `with`, \
`try` or `del`; no dictionary, set, f-string or conditional expression. A `lambda` and a list \
comprehension are there.
- Names are the kernel's own, and those below, which it does not bind. Of a value there are \
{listed(OF_TENSORS)} alone. Strings are {listed(STRINGS)}.
- The masks are yours: that indices stay within tensors and tiles is not checked before it runs.

## Functions

Types: {listed(TYPES)}. Of Python: {listed(_CONTROL)}. CuTe DSL's own:

{members}

Those of `backends.cutedsl.kernel`:

```text
{chr(10).join(lines)}
```

Of numbers:

```text
{elements}
```
Also, of one float: {listed({n for n in FUNCTIONS - told if not n.isupper()})}; constants: \
{listed({n for n in FUNCTIONS if n.isupper()})}.

## Calls of them

From kernels that a test compiles:

```python
{calls}
```"""
