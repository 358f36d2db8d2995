"""The initial value of a running maximum that rescales sums of exponentials.

With -inf, a row that is masked so far would give exp(-inf + inf) = NaN. So the start is a finite
number below all values. If the values can reach the lowest f32 number, as masked sums can, the
start is that number. Otherwise it is a number that stays finite when it is multiplied by log2(e).
"""

from __future__ import annotations

from ir.spec import Apply, Cast, Equation, Expr, Read, Spec
from ir.variant.bounds import reaches_ends
from ir.variant.variant import pointwise

LOWEST_F32 = -(2 - 2**-23) * 2.0**127
LOWEST_SCALED = -1.0e38  # finite times log2(e)


def lowest(spec: Spec, maximum: Equation) -> float:
    """The number at which the running maximum of an equation starts."""
    return LOWEST_F32 if _near_end(spec, maximum.reduce.body) else LOWEST_SCALED


def _near_end(spec: Spec, expr: Expr) -> bool:
    """Whether a value can be close to the lowest f32 number, because something is added to it or
    selected instead of it.

    A plain read of memory counts as far from that number, and -inf does not count as close to it.
    """
    if reaches_ends(expr):
        return True
    match expr:
        case Apply("where", (_, chosen, _)):
            return _near_end(spec, chosen)
        case Apply(_, args):
            return any(_near_end(spec, a) for a in args)
        case Cast(_, value):
            return _near_end(spec, value)
        case Read(tensor):
            made = next((e for e in spec.equations if e.target == tensor), None)
            return made is not None and pointwise(made) and _near_end(spec, made.value)
    return False
