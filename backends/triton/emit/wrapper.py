"""The wrapper: the function named after a kernel, which checks its inputs and reads sizes off them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from backends.triton.emit import spelling
from backends.triton.signature import size_sources
from ir.nest.nest import LoopNest
from ir.spec import Expr, Size, Spec, Tensor

Source = tuple[str, str, int, int]  # a size, and where it is told: see `size_sources`
_WORD = re.compile(r"[A-Za-z_]\w*")


def size_lines(nest: LoopNest, text: str) -> list[str]:
    """The lines that read the sizes of a text off shapes, and those that derive others."""
    used = set(_WORD.findall(text))
    derived = _derived(nest.spec, used)
    read = [_read(source) for source in size_sources(nest) if source[0] in used]
    return [*read, *derived]


def wrapper_lines(nest: LoopNest, made: str) -> list[str]:
    """The lines that check each input, and that read the sizes of a text off shapes.

    A dimension is compared as soon as its sizes are known. An input is checked again at the end
    where other inputs tell a size of it, or a size is derived, or stands in two of its dimensions.
    """
    sources = size_sources(nest)
    names = {t.name for t in nest.spec.inputs}
    known = {size for size, tensor, *_ in sources if tensor not in names}
    checks: list[tuple[str, list[Source]]] = []  # a line, and the sizes to be read below it
    again: list[Tensor] = []
    words = [made]
    for t in nest.spec.inputs:
        own = [s for s in sources if s[1] == t.name]
        dims = [_dim(e, known) for e in t.shape]
        open_ = {n for n, text in enumerate(dims) if text.startswith('"')}
        if open_ - {dim for _, _, dim, _ in own}:
            again.append(t)
        checks.append((_check(nest.spec, t, dims), own))
        known |= {size for size, *_ in own}
        words += [text for n, text in enumerate(dims) if n not in open_]
    last = [_check(nest.spec, t, [spelling.size(e) for e in t.shape]) for t in again]
    used = set(_WORD.findall(" ".join([*words, *last])))
    derived = _derived(nest.spec, used)
    first = [
        line
        for check, own in checks
        for line in (check, *(x for s in own for x in _told(s, s[0] in used)))
    ]
    return [*first, *derived, *last]


def _dim(expr: Expr, known: Collection[str]) -> str:
    """A dimension as a number, or as a text where a size in it is not known."""
    names = {n.name for n in expr.walk() if isinstance(n, Size)}
    text = spelling.size(expr)
    return text if names <= set(known) else f'"{text}"'


def _check(spec: Spec, t: Tensor, dims: list[str]) -> str:
    shape = f"({dims[0]},)" if len(dims) == 1 else f"({', '.join(dims)})"
    dtype, first = spelling.TORCH[t.dtype], spec.inputs[0].name
    return f'_require("{t.name}", {t.name}, {dtype}, {shape}, {first})'


def _told(source: Source, used: bool) -> Iterator[str]:
    """What reads a size off an input; one that is less than its dimension may be too small."""
    size, tensor, _, shift = source
    if used or shift < 0:
        yield _read(source)
    if shift < 0:
        yield f"if {size} < 0:"
        yield f'    raise ValueError(f"`{tensor}` is too short: it tells {size} = {{{size}}}")'


def _read(source: Source) -> str:
    size, tensor, dim, shift = source
    by = f" {'+' if shift > 0 else '-'} {abs(shift)}" if shift else ""
    return f"{size} = {tensor}.shape[{dim}]{by}"


def _derived(spec: Spec, used: set[str]) -> list[str]:
    """The lines of the derived sizes that are used; what they use is used too."""
    lines = []
    for name, expr in reversed(spec.derived):
        if name in used:
            lines.insert(0, f"{name} = {spelling.size(expr)}")
            used |= set(_WORD.findall(spelling.size(expr)))
    return lines
