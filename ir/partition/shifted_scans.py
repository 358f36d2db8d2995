"""Shifted scans: a scan that is only read some steps later is one of terms that are shifted.

before: s[i, j] = cumsum(x[i, j], j)
        y[i, j] = where(j < 1, 0.0, pad(s[i, j - 1], 0.0))       a concatenation of a zero and the scan
after:  y[i, j] = cumsum(pad(x[i, j - 1], 0.0), j)

So an exclusive scan is stored once, and not read again.
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
    """The spec, of literal sizes, with such scans in the place of what reads them.

    aliases: tensors that show memory under another shape; their equations stay.
    """
    return with_scans_instead(spec, aliases, _later, _shifted)


def with_scans_instead(
    spec: Spec,
    aliases: Collection[str],
    read_of: Callable[[Equation], Read | None],
    instead: Callable[[Equation, Equation, Read, Facts], Equation | None],
) -> Spec:
    """The spec with other scans in the place of equations that alone read one.

    aliases: as above. read_of: what an equation reads, and nothing else; None of another one.
    instead: the scan in the place of an equation, by the scan that it reads and how; None where it stays.
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
    """Whether an equation is a scan from its first term on, of what is computed element by element."""
    value = e.value
    if not isinstance(value, Scan) or value.reverse or value.exclusive:
        return False
    return is_plain(e) and is_pointwise(value.body) and not stepped(spec, e.target)


def _later(e: Equation) -> Read | None:
    """The padded read that an equation is, perhaps behind a choice that gives what the padding gives."""
    value = e.value
    match value:
        case Apply(
            "where", (Apply("lt", (Index(index), Number(first))), Number(start), Read() as read)
        ):
            before = read.pad == start and _lag(read, index) == first
            value = read if before else value
    return value if isinstance(value, Read) and value.pad is not None and is_plain(e) else None


def _lag(read: Read, index: str) -> int:
    """By how many steps a read lies before an index; 0: it does not, or elsewhere."""
    for position in read.at:
        match position:
            case Apply("sub", (Index(name), Number(lag))) if name == index and type(lag) is int:
                return lag
    return 0


def _shifted(e: Equation, scan: Equation, read: Read, known: Facts) -> Equation | None:
    """The scan of shifted terms in the place of an equation that reads one; None where it reads another part
    of it, or what precedes the first term is not the scan's identity element."""
    value, identity = scan.scan, IDENTITY[scan.scan.reduction]
    dim = scan.indices.index(value.along)
    shapes = [[number(n, {}) for n in known.tensors[t].shape] for t in (e.target, scan.target)]
    if len(e.indices) != len(scan.indices) or read.pad != identity:
        return None
    index = e.indices[dim]
    lag = _lag(read, index)
    places = (*e.at[:dim], read.at[dim], *e.at[dim + 1 :])
    after = shapes[0][dim] - lag - shapes[1][dim]  # steps that are read behind the last one
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
    """The expression at other indices; what it then reads elsewhere than at an index may lie out of bounds,
    where its value is not used."""
    if isinstance(expr, Index):
        return to.get(expr.name, expr)
    made = rebuilt(expr, lambda part: _moved(part, to))
    if isinstance(made, Read) and made.pad is None:
        plain = all(isinstance(p, Index | Number) for p in made.at)
        return made if plain else replace(made, pad=0.0)
    return made
