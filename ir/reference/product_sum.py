"""Evaluates sums of products as batched matmuls."""

from __future__ import annotations

import math

import numpy as np

from ir.reference.labelled import Labelled
from ir.spec import FLOATS, Apply, Cast, Expr


def factors(expr: Expr) -> list[Expr]:
    """The factors of a product, looking through casts between floats."""
    if isinstance(expr, Apply) and expr.function == "mul":
        return [f for a in expr.args for f in factors(a)]
    if isinstance(expr, Cast) and expr.dtype in FLOATS:
        inner = factors(expr.value)
        return inner if len(inner) > 1 else [expr]
    return [expr]


def product_sum(parts: list[Labelled], over: tuple[str, ...]) -> Labelled:
    """The product of the parts, summed over the axes `over`."""
    parts = _absorbed(parts)
    while len(parts) > 2:  # the two smallest first, which keeps intermediates small
        parts.sort(key=lambda p: p.data.size)
        first, second, *rest = parts
        gone = tuple(a for a in over if not any(a in p.axes for p in rest))
        parts = _absorbed([_pair(first, second, gone), *rest])
    if len(parts) == 1:
        summed = tuple(k for k, a in enumerate(parts[0].axes) if a in over)
        kept = tuple(a for a in parts[0].axes if a not in over)
        return Labelled(kept, parts[0].data.sum(axis=summed))
    return _pair(parts[0], parts[1], over)


def _absorbed(parts: list[Labelled]) -> list[Labelled]:
    """Multiplies each part into a part that has all of its axes, if there is one."""
    kept: list[Labelled] = []
    for part in sorted(parts, key=lambda p: -len(p.axes)):
        homes = [k for k, p in enumerate(kept) if set(part.axes) <= set(p.axes)]
        if homes:
            k = min(homes, key=lambda k: kept[k].data.size)
            kept[k] = Labelled(kept[k].axes, kept[k].data * part.along(kept[k].axes))
        else:
            kept.append(part)
    return kept


def _pair(a: Labelled, b: Labelled, over: tuple[str, ...]) -> Labelled:
    """The product of two arrays, summed over `over`, as one batched matmul."""
    shared = [x for x in a.axes if x in b.axes]
    batch = tuple(x for x in shared if x not in over)
    inner = tuple(x for x in shared if x in over)
    a, b = _summed(a, shared, over), _summed(b, shared, over)
    left = tuple(x for x in a.axes if x not in shared)
    right = tuple(x for x in b.axes if x not in shared)
    length = {x: n for p in (a, b) for x, n in zip(p.axes, p.data.shape, strict=True)}

    def count(axes: tuple[str, ...]) -> int:
        return math.prod(length[x] for x in axes)

    x = a.along(batch + left + inner).reshape(count(batch), count(left), count(inner))
    y = b.along(batch + inner + right).reshape(count(batch), count(inner), count(right))
    axes = batch + left + right
    return Labelled(axes, np.matmul(x, y).reshape([length[i] for i in axes]))


def _summed(a: Labelled, shared: list[str], over: tuple[str, ...]) -> Labelled:
    """Sums the array over those axes of `over` that the other operand lacks."""
    alone = tuple(k for k, x in enumerate(a.axes) if x in over and x not in shared)
    if not alone:
        return a
    kept = tuple(x for k, x in enumerate(a.axes) if k not in alone)
    return Labelled(kept, a.data.sum(axis=alone))
