"""Replaces a scan of flipped terms whose result is flipped back by a reverse scan.

before: s[i, j] = cumsum(x[i, N - 1 - j], j)
        y[i, j] = s[i, N - 1 - j]
after:  y[i, j] = cumsum(x[i, j], j, reverse=True)

A machine that can store a scan from its end then stores it once and does not read it again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from ir.affine import affine
from ir.partition.shifted_scans import with_scans_instead
from ir.partition.views import is_plain
from ir.sizes import value as number
from ir.spec import Apply, Equation, Expr, Index, Number, Read, Spec
from ir.verify import Facts
from ir.visit import rebuilt


def with_reverse_scans(spec: Spec, aliases: Collection[str] = ()) -> Spec:
    """Replaces scans that are flipped back by reverse scans, in a spec of literal sizes.

    aliases: views of other tensors' memory under another shape; their equations stay.
    """
    return with_scans_instead(spec, aliases, _read, _reversed)


def _read(e: Equation) -> Read | None:
    """The read that an equation consists of; None for other equations."""
    return e.value if isinstance(e.value, Read) and is_plain(e) else None


def _reversed(e: Equation, scan: Equation, read: Read, known: Facts) -> Equation | None:
    """The reverse scan that replaces an equation; None if it does not read the scan flipped."""
    value = scan.scan
    shapes = [[number(n, {}) for n in known.tensors[t].shape] for t in (e.target, scan.target)]
    if read.pad is not None or shapes[0] != shapes[1]:
        return None
    dim = scan.indices.index(value.along)
    index, last = e.indices[dim], shapes[0][dim] - 1
    back = Apply("sub", (Number(last), Index(index)))
    if read.at[:dim] + read.at[dim + 1 :] != e.at[:dim] + e.at[dim + 1 :]:
        return None
    if affine(read.at[dim]) != affine(back) or not last:
        return None
    to: dict[str, Expr] = {a: Index(b) for a, b in zip(scan.indices, e.indices, strict=True)}
    body = _moved(value.body, {**to, value.along: back})
    return replace(e, value=replace(value, body=body, along=index, reverse=True))


def _moved(expr: Expr, to: Mapping[str, Expr]) -> Expr:
    """The expression at other indices; a position that simplifies to an index is written as one."""
    if isinstance(expr, Index):
        return to.get(expr.name, expr)
    made = rebuilt(expr, lambda part: _moved(part, to))
    if not isinstance(made, Read):
        return made
    forms = [affine(position) for position in made.at]
    places = (Index(f.index) if f and f.index else p for f, p in zip(forms, made.at, strict=True))
    return replace(made, at=tuple(places))
