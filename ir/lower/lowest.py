"""Where a running maximum starts by which sums of exponentials are rescaled.

With -inf, a row that is masked so far would give exp(-inf + inf) = NaN, so it is a finite number below the
values. Where these may be the lowest number of f32, as sums with a mask are, it is that number, else one that
is still finite in the unit of a power of two.
"""

from __future__ import annotations

from ir.spec import Apply, Cast, Equation, Expr, Read, Spec
from ir.variant.bounds import reaches_ends
from ir.variant.variant import pointwise

LOWEST_F32 = -(2 - 2**-23) * 2.0**127
LOWEST_SCALED = -1.0e38  # finite times log2(e)


def lowest(spec: Spec, maximum: Equation) -> float:
    """The number that the running maximum of an equation of a spec starts at."""
    return LOWEST_F32 if _near_end(spec, maximum.reduce.body) else LOWEST_SCALED


def _near_end(spec: Spec, expr: Expr) -> bool:
    """Whether a value may be next to the lowest number: something is added to it or chosen in its place.
    What is read from memory alone counts as far from it, and -inf is not next to it."""
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
