"""Squeezes tensors: drops dimensions of size 1.

before: m[i, j]: [N, 1] = ..., y[i, k] = x[i, k] - m[i, 0]
after:  m[i] = ..., y[i, k] = x[i, k] - m[i]

A dimension stays if a padded read can be out of bounds in it. The memory layout does not change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ir.contraction import indices
from ir.functions import IDENTITY
from ir.recurrence import recurrences
from ir.spec import (
    Bucketize,
    Cast,
    Equation,
    Expr,
    Facts,
    Index,
    Number,
    Read,
    Reduce,
    Scan,
    Spec,
    Tensor,
)
from ir.verify import facts
from ir.visit import pruned, rebuilt, renamed

_ONE, _FIRST = Number(1), Number(0)


def squeezed(spec: Spec) -> Spec:
    """The spec over tensors without dimensions of size 1, and without unread inputs."""
    known = facts(spec)
    kept = {name: _kept(t) for name, t in known.tensors.items()}
    _widen(spec, kept, known.tensors)
    if all(len(dims) == len(known.tensors[name].shape) for name, dims in kept.items()):
        return spec
    made = replace(
        spec,
        inputs=tuple(_tensor(t, kept) for t in spec.inputs),
        outputs=tuple(_tensor(t, kept) for t in spec.outputs),
        equations=tuple(_equation(e, kept, known) for e in spec.equations),
    )
    return _read(pruned(made))


def _read(spec: Spec) -> Spec:
    """Drops the inputs that no equation reads."""
    read = {s for e in spec.equations for s in e.sources()}
    return replace(spec, inputs=tuple(t for t in spec.inputs if t.name in read))


def _kept(tensor: Tensor) -> list[int]:
    return [d for d, size in enumerate(tensor.shape) if size != _ONE]


def _widen(spec: Spec, kept: dict[str, list[int]], tensors: Mapping[str, Tensor]) -> None:
    """Adds to `kept` the dimensions that must stay.

    These are dimensions where a padded read can be out of bounds or a position depends on data, the
    dimension of `bucketize` borders, and the steps of recurrences.
    """
    for e in spec.equations:
        for node in (n for x in (*e.at, e.value) for n in x.walk()):
            if isinstance(node, Bucketize):
                kept[node.borders] = [0]
            elif isinstance(node, Read):
                outside = {d for d, p in enumerate(node.at) if _moves(p, node.pad is not None)}
                kept[node.tensor] = sorted({*kept[node.tensor], *outside})
    for found in recurrences(spec):
        for target in found.targets:
            step = spec.equation(target).indices.index(found.index)
            kept[target] = sorted({*kept[target], step})


def _moves(position: Expr, padded: bool) -> bool:
    """Whether a position of a padded read can differ from 0, or a position of another read depends
    on data."""
    return position != _FIRST if padded else any(isinstance(n, Read) for n in position.walk())


def _tensor(tensor: Tensor, kept: Mapping[str, list[int]]) -> Tensor:
    return replace(tensor, shape=tuple(tensor.shape[d] for d in kept[tensor.name]))


def _equation(e: Equation, kept: Mapping[str, list[int]], known: Facts) -> Equation:
    tensors = known.tensors
    dims = kept[e.target]
    gone = {p.name: _FIRST for d, p in enumerate(e.at) if d not in dims and isinstance(p, Index)}
    ones = {i for i in indices(e.value) if known.ranges[i].high == _ONE and i not in e.indices}
    gone |= dict.fromkeys(ones, _FIRST)
    if isinstance(e.value, Scan) and known.ranges[e.value.along].high == _ONE:
        ones.add(e.value.along)
    value = _dropped(renamed(_of_one(e.value, ones, tensors[e.target].dtype), gone), kept)
    at = tuple(_dropped(e.at[d], kept) for d in dims)
    sizes = e.sizes or tensors[e.target].shape
    return replace(e, at=at, value=value, sizes=tuple(sizes[d] for d in dims))


def _of_one(value: Expr, ones: set[str], dtype: str) -> Expr:
    """Removes the indices of extent 1 from a reduction or scan."""
    if isinstance(value, Scan) and value.along in ones:
        return Cast(dtype, Number(IDENTITY[value.reduction]) if value.exclusive else value.body)
    if not isinstance(value, Reduce):
        return value
    over = tuple(i for i in value.over if i not in ones)
    if not over:
        return Cast(dtype, _FIRST if value.reduction.startswith("arg") else value.body)
    return replace(value, over=over, ranges=tuple(r for r in value.ranges if r.index in over))


def _dropped(expr: Expr, kept: Mapping[str, list[int]]) -> Expr:
    """Removes the positions in dropped dimensions."""
    made = rebuilt(expr, lambda x: _dropped(x, kept))
    if isinstance(made, Read):
        return replace(made, at=tuple(made.at[d] for d in kept[made.tensor]))
    return made
