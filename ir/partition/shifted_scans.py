"""Replaces a scan that is only read some steps later (an exclusive scan) by one of shifted terms.

before: s[i, j] = cumsum(x[i, j], j)
        y[i, j] = where(j < 1, 0.0, pad(s[i, j - 1], 0.0))       a concatenation of a zero and the scan
after:  y[i, j] = cumsum(pad(x[i, j - 1], 0.0), j)

The kernel then stores the scan once and does not read it again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import cast

from ir.functions import IDENTITY
from ir.partition.views import is_plain, is_pointwise
from ir.recurrence import stepped
from ir.sizes import value as number
from ir.spec import Apply, Equation, Expr, Index, Number, Read, Scan, Spec
from ir.verify import Facts, facts
from ir.visit import pruned, rebuilt


def with_shifted_scans(spec: Spec, aliases: Collection[str] = ()) -> Spec:
    """Replaces scans that are read some steps later by scans of shifted terms, in a spec of literal
    sizes.

    aliases: views of other tensors' memory under another shape; their equations stay.
    """
    return with_scans_instead(spec, aliases, _later, _shifted)


def with_scans_instead(
    spec: Spec,
    aliases: Collection[str],
    read_of: Callable[[Equation], Read | None],
    instead: Callable[[Equation, Equation, Read, Facts], Equation | None],
) -> Spec:
    """Replaces equations that are the only reader of a scan by other scans.

    aliases: views of other tensors' memory under another shape; their equations stay.
    read_of: the read that an equation consists of; None for other equations.
    instead: the scan that replaces an equation, given the scan and how the equation reads it; None
        to keep the equation.
    """
    kept = {t.name for t in spec.outputs} | set(aliases)
    scans = {e.target: e for e in spec.equations if is_scan(spec, e) and e.target not in kept}
    if not scans:
        return spec
    known, made = facts(spec), []
    for e in spec.equations:
        read = None if e.target in aliases else read_of(e)
        scan = scans.get(read.tensor) if read is not None else None
        alone = scan and [r for r in spec.equations if scan.target in r.sources()] == [e]
        made.append((scan and read and alone and instead(e, scan, read, known)) or e)
    return pruned(replace(spec, equations=tuple(made)))


def is_scan(spec: Spec, e: Equation) -> bool:
    """Whether an equation is an inclusive forward scan of a pointwise body."""
    value = e.value
    if not isinstance(value, Scan) or value.reverse or value.exclusive:
        return False
    return is_plain(e) and is_pointwise(value.body) and not stepped(spec, e.target)


def _later(e: Equation) -> Read | None:
    """The padded read that an equation consists of, possibly inside a `where` that selects the
    padding value."""
    value = e.value
    match value:
        case Apply(
            "where", (Apply("lt", (Index(index), Number(first))), Number(start), Read() as read)
        ):
            before = read.pad == start and _lag(read, index) == first
            value = read if before else value
    return value if isinstance(value, Read) and value.pad is not None and is_plain(e) else None


def _lag(read: Read, index: str) -> int:
    """The number of steps by which a read precedes an index; 0 if it does not."""
    for position in read.at:
        match position:
            case Apply("sub", (Index(name), Number(lag))) if name == index and type(lag) is int:
                return lag
    return 0


def _shifted(e: Equation, scan: Equation, read: Read, known: Facts) -> Equation | None:
    """The scan of shifted terms that replaces an equation.

    None if the equation reads another part of the scan, or if the value before the first term is
    not the scan's identity element.
    """
    value, identity = scan.scan, IDENTITY[scan.scan.reduction]
    dim = scan.indices.index(value.along)
    shapes = [[number(n, {}) for n in known.tensors[t].shape] for t in (e.target, scan.target)]
    if len(e.indices) != len(scan.indices) or read.pad != identity:
        return None
    index = e.indices[dim]
    lag = _lag(read, index)
    places = (*e.at[:dim], read.at[dim], *e.at[dim + 1 :])
    after = shapes[0][dim] - lag - shapes[1][dim]  # steps that are read after the last one
    beside = shapes[0][:dim] + shapes[0][dim + 1 :] == shapes[1][:dim] + shapes[1][dim + 1 :]
    if lag < 1 or read.at != places or after > 0 or not beside:
        return None
    later = Apply("sub", (Index(index), Number(lag)))
    to: dict[str, Expr] = {a: Index(b) for a, b in zip(scan.indices, e.indices, strict=True)}
    body = _moved(value.body, {**to, value.along: later})
    if isinstance(value.body, Read) and value.body.pad is None:
        body = replace(cast(Read, body), pad=read.pad)
    else:
        body = Apply("where", (Apply("ge", (Index(index), Number(lag))), body, Number(identity)))
    return replace(e, value=replace(value, body=body, along=index))


def _moved(expr: Expr, to: Mapping[str, Expr]) -> Expr:
    """The expression at other indices. Reads that are then out of bounds get padding; their value
    is not used."""
    if isinstance(expr, Index):
        return to.get(expr.name, expr)
    made = rebuilt(expr, lambda part: _moved(part, to))
    if isinstance(made, Read) and made.pad is None:
        plain = all(isinstance(p, Index | Number) for p in made.at)
        return made if plain else replace(made, pad=0.0)
    return made
