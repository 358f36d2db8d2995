"""Verifies a spec and infers its facts: ranges, shapes, dtypes, free sizes."""

from __future__ import annotations

from functools import lru_cache
from typing import cast

from ir.affine import affine
from ir.dtypes import Dtypes, is_bool, is_float, strong
from ir.errors import KernelError
from ir.indices import indices_agree
from ir.linear import added, polynomial, scaled, subtracted, turns_negative
from ir.memo import by_identity
from ir.print import expression_text
from ir.ranges import Ranges
from ir.recurrence import recurrences, stepped
from ir.sizes import free_sizes
from ir.source import near
from ir.spec import (
    DTYPES,
    GIVEN,
    INNER,
    Bucketize,
    Equation,
    Expr,
    Facts,
    Index,
    Number,
    Part,
    Read,
    Size,
    Spec,
    Tensor,
)


@by_identity
def facts(spec: Spec) -> Facts:
    """The facts of a spec. Raises KernelError at the first rule that it breaks."""
    # 1 and 1.0 are equal as cache keys but have different dtypes, so the attributes' types are part
    # of the key.
    return _facts(spec, tuple(type(v) for _, v in spec.attributes))


@lru_cache(maxsize=1024)
def _facts(spec: Spec, _: tuple[type, ...]) -> Facts:
    for rule in _RULES:
        rule(spec)
    ranges = Ranges(spec)
    ranges.infer()
    for e in spec.equations:
        _inside(e, ranges)
    found = dtypes(spec)
    declared = {t.name: t for t in (*spec.inputs, *spec.outputs)}
    tensors = {t.name: t for t in spec.inputs}
    for e in spec.equations:
        inner = Tensor(e.target, found[e.target], ranges.shape(e.target))
        tensors[e.target] = declared.get(e.target, inner)
    return Facts(ranges.found, tensors, free_sizes(spec))


def _sizes_known(spec: Spec) -> None:
    """Raises KernelError unless all sizes are declared and derived sizes use earlier ones only."""
    derived = [name for name, _ in spec.derived]
    for k, (name, expr) in enumerate(spec.derived):
        for node in expr.walk():
            if isinstance(node, Size) and node.name in derived[k:]:
                raise KernelError(
                    f"the size `{name}` needs `{node.name}`, which is not computed before it",
                    place=expr.place,
                    allowed=", ".join((*free_sizes(spec), *derived[:k])),
                    hint="compute it from the sizes of the tensors, in order",
                )
    attributes = [name for name, _ in spec.attributes]
    known = (*free_sizes(spec), *derived, *attributes)
    written = [x for e in spec.equations for x in (*e.at, *e.sizes, e.value)]
    for expr in (*written, *(end for t in spec.inputs for end in t.range)):
        for node in expr.walk():
            if isinstance(node, Size) and node.name not in known:
                raise KernelError(
                    f"there is no size `{node.name}`",
                    place=node.place,
                    allowed=", ".join(known) or "none: the signature names no size",
                    hint=near(node.name, known, "sizes come from the types in the signature"),
                )


def _defined(spec: Spec) -> None:
    """Raises KernelError unless tensors are defined and read correctly.

    Each is defined once, before its use or in one recurrence with its readers, and read at all its
    dimensions.
    """
    ranks = {t.name: len(t.shape) for t in spec.inputs}
    for e in spec.equations:
        together = stepped(spec, e.target)
        fed = {t: len(spec.equation(t).at) for t in (together.targets if together else ())}
        for node in (n for x in (*e.at, e.value) for n in x.walk()):
            if isinstance(node, Read):
                _readable(spec, {**fed, **ranks}, node.tensor, len(node.at), node)
            elif isinstance(node, Bucketize):
                _readable(spec, ranks, node.borders, 1, node)
        if e.target in ranks:
            raise KernelError(
                f"`{e.target}` is defined twice",
                place=e.place,
                hint="give the second one another name; the inputs are defined by the caller",
            )
        ranks[e.target] = len(e.at)
    equations = {e.target: e for e in spec.equations}
    for t in spec.outputs:
        if t.name not in equations:
            raise KernelError(
                f"`{t.name}` is returned, but no equation defines it",
                place=t.place,
                allowed=", ".join(equations) or "a tensor that an equation defines",
                hint=near(t.name, equations, f"add an equation `{t.name}[...] = ...`"),
            )
        if len(t.shape) != ranks[t.name]:
            raise KernelError(
                f"`{t.name}` has {ranks[t.name]} indices, its type in the signature has "
                f"{len(t.shape)} sizes",
                place=equations[t.name].place,
                hint="give the type after `->` one size for each index",
            )


def _readable(spec: Spec, ranks: dict[str, int], name: str, rank: int, node: Expr) -> None:
    if name not in ranks:
        later = name in {e.target for e in spec.equations}
        raise KernelError(
            f"`{name}` is used before it is defined" if later else f"there is no tensor `{name}`",
            place=node.place,
            allowed=", ".join(ranks) or "none: nothing is defined yet",
            hint="put the equation that defines it first; a recurrence reads one step away: "
            f"`pad({name}[t - 1, ...], 0.0)`"
            if later
            else near(name, ranks, "define it with an equation of its own"),
        )
    if ranks[name] != rank:
        raise KernelError(
            f"`{name}` has {ranks[name]} dimensions and is given {rank} positions",
            place=node.place,
            allowed=f"{ranks[name]}",
            hint="give one position for each dimension",
        )


def _returned_once(spec: Spec) -> None:
    """Raises KernelError if a tensor is returned twice, or neither read nor returned."""
    outputs = [t.name for t in spec.outputs]
    for k, t in enumerate(spec.outputs):
        if t.name in outputs[:k]:
            raise KernelError(f"`{t.name}` is returned twice", place=t.place, hint="return it once")
    read = {name for e in spec.equations for name in e.sources()}
    for t in spec.inputs:
        if t.name not in read:
            raise KernelError(
                f"the input `{t.name}` is never read",
                place=t.place,
                hint="remove it from the signature, or use it",
            )
    for e in spec.equations:
        if e.target not in read and e.target not in outputs:
            raise KernelError(
                f"`{e.target}` is never read and not returned",
                place=e.place,
                hint="remove the equation, or return the tensor",
            )


def _names_apart(spec: Spec) -> None:
    """Raises KernelError if one name denotes two things."""
    tensors = {t.name for t in spec.inputs} | {e.target for e in spec.equations}
    attributes = {name for name, _ in spec.attributes}
    for e in spec.equations:
        if e.target in attributes:
            raise KernelError(
                f"`{e.target}` is an attribute and a tensor",
                place=e.place,
                hint="give the tensor another name",
            )
        nodes = (n for x in (*e.at, e.value) for n in x.walk())
        named = [(n.name, n.place) for n in nodes if isinstance(n, Index)]
        named += [(i, e.value.place) for i in e.reduced]
        for name, place in named:
            if name in tensors or name in attributes:
                kind = "a tensor" if name in tensors else "an attribute"
                raise KernelError(
                    f"`{name}` is {kind} and an index",
                    place=place,
                    hint=f"give the index another name, or write `{name}[...]` with positions",
                )


def _inside(e: Equation, ranges: Ranges) -> None:
    """Raises KernelError if a position is certainly out of bounds at some sizes."""
    for node in (n for x in (*e.at, e.value) for n in x.walk()):
        if isinstance(node, Read) and node.pad is None:
            for position, size in zip(node.at, ranges.shape(node.tensor), strict=True):
                _position(position, size, node.tensor, ranges)
    if e.accumulate:
        for position, size in zip(e.at, ranges.shape(e.target), strict=True):
            _position(position, size, e.target, ranges)


def _position(position: Expr, size: Expr, tensor: str, ranges: Ranges) -> None:
    form = affine(position)
    if form is None:
        return
    derived = ranges.derived
    low = high = polynomial(form.offset, derived)
    for index, c in form.terms:
        extent = ranges.extent(index)
        if extent is None:
            return
        last = scaled(subtracted(polynomial(extent, derived), {(): 1}), c)
        if c > 0:
            high = added(high, last)
        else:
            low = added(low, last)
    room = subtracted(subtracted(polynomial(size, derived), {(): 1}), high)
    if turns_negative(low) or turns_negative(room):
        raise KernelError(
            f"the position `{expression_text(position)}` leaves `{tensor}`, whose size there is "
            f"{expression_text(size)}",
            place=position.place,
            hint=f"say what a position outside reads as: `pad({tensor}[...], 0.0)`, or return a "
            "smaller tensor",
        )


def dtypes(spec: Spec) -> dict[str, str]:
    """The dtype of every tensor; that of an output is the signature's.

    A loop-carried tensor that is not returned starts as f32 and is iterated to a fixed point.
    """
    known = {t.name: t.dtype for t in spec.inputs}
    outputs = {t.name: t for t in spec.outputs}
    carried = {t for r in recurrences(spec) for t in r.targets}
    known |= {t: outputs[t].dtype if t in outputs else "f32" for t in carried}
    rules = Dtypes(known, dict(spec.attributes))
    before: dict[str, str] | None = None
    while before != known:
        before = dict(known)
        for e in spec.equations:
            rules.positions(e.at)
            found = strong(rules.of(e.value))
            if e.target in outputs:
                _storable(outputs[e.target], found, e)
                found = outputs[e.target].dtype
            known[e.target] = found
        if not carried:
            break
    return known


def _storable(t: Tensor, found: str, e: Equation) -> None:
    kinds = [(is_float(d), is_bool(d)) for d in (t.dtype, found)]
    if kinds[0] != kinds[1] and not (is_bool(found) and not is_float(t.dtype)):
        raise KernelError(
            f"`{t.name}` is {found}, the signature returns {t.dtype}",
            place=e.place,
            allowed="a float stored as a float, an integer as an integer",
            hint=f"write the cast: `{t.dtype}(...)`",
        )


def _stored(spec: Spec) -> None:
    """Raises KernelError if an output has a dtype that only inputs can have."""
    for t in spec.outputs:
        if t.dtype in GIVEN:
            raise KernelError(
                f"`{t.name}` is {t.dtype}, which only inputs can be",
                place=t.place,
                allowed=", ".join(d for d in DTYPES if d not in (*INNER, *GIVEN)),
                hint="return the power of two as f32",
            )


def _parts_fit(spec: Spec) -> None:
    """Raises KernelError if a part exceeds its larger tensor, or is not a plainly stored output."""
    for t in spec.inputs:
        if t.part is not None:
            raise KernelError(
                f"the input `{t.name}` is a part of a larger tensor",
                place=t.place,
                allowed="outputs",
                hint="take the larger tensor, and read it from that position on",
            )
    for t in (t for t in spec.outputs if t.part is not None):
        part = cast(Part, t.part)
        size = t.shape[part.axis] if part.axis < len(t.shape) else None
        if not isinstance(size, Number) or not 0 <= part.first <= part.whole - size.value:
            raise KernelError(
                f"`{t.name}` is no part of its whole",
                place=t.place,
                allowed="sizes that are numbers, and first + size of at most the whole size",
            )
        if any(e.accumulate for e in spec.equations if e.target == t.name):
            raise KernelError(
                f"`{t.name}`, a part of a larger tensor, is scattered into",
                place=t.place,
                hint="scatter into a tensor of its own",
            )


_RULES = (
    _stored,
    _sizes_known,
    _names_apart,
    _defined,
    indices_agree,
    _returned_once,
    _parts_fit,
)
