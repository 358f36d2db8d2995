"""Factor hoisting: values that are a positive number times a tile, where the multiplication can be
postponed.

    before: a = s * c; mx = max(a); p = exp(a - mx)
    after:  mx = max(s) * c; p = exp2(s * (c * LOG2_E) - mx * LOG2_E)

The maximum is exact, as rounding is monotonic. The exponential then needs one fused multiply-add
per element in addition to exp2. It rounds `mx * LOG2_E`, which scales all exponentials of a row by
one wrong factor. That factor cancels where they are divided by their sum. It does not where a
logarithm is taken of the sum.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from backends.gpu.uses import tiles
from ir.nest.nest import Launch, Map, Reduction, Tile
from ir.nest.steps import scalar
from ir.spec import Apply, Expr, Number
from ir.variant.bounds import positive_scalar, reaches_ends

LOWEST = Number(-float("inf"))
LOGARITHMS = frozenset({"log", "log2", "log10", "log1p"})


@dataclass(frozen=True, slots=True)
class Hoisted:
    """A value that equals `factor` times `of`."""

    of: Expr
    factor: Expr


def factors(launch: Launch) -> dict[str, Hoisted]:
    """The values of a launch whose factor can be hoisted, by name."""
    maps: dict[str, Map] = {}
    written: Counter[str] = Counter()
    for s in launch.statements():
        written.update([s.value] if hasattr(s, "value") else [])
        if isinstance(s, Map):
            maps[s.value] = s
    found, exact = {}, exact_differences(launch)
    for name, s in maps.items():
        parts = None if name in exact else _parts(s.expression)
        if parts and written[name] == 1 and launch.value(name).dtype == "f32":
            if all(_waits(use, name) for use in _readers(launch, name)):
                found[name] = parts
    return found


def exact_differences(launch: Launch) -> frozenset[str]:
    """The values of a launch from which is subtracted before the difference is scaled, by name.
    These are all values where a logarithm is taken, and those that may be near the ends of f32,
    such as sums with a mask that holds the lowest number: log2(e) times such a number is infinite.
    """
    maps = [s for s in launch.statements() if isinstance(s, Map)]
    parts = (e for s in maps for e in s.expression.walk())
    if any(isinstance(e, Apply) and e.function in LOGARITHMS for e in parts):
        return frozenset(v.name for v in launch.values)
    found: set[str] = set()
    for s in maps:
        if any(_is_near(e, found) for e in s.expression.walk()):
            found.add(s.value)
    return frozenset(found)


def _is_near(expr: Expr, known: Collection[str]) -> bool:
    """Whether a part of an expression may be near an end of f32. known: values that may be."""
    return expr.value in known if isinstance(expr, Tile) else reaches_ends(expr)


def _parts(expr: Expr) -> Hoisted | None:
    """An expression as a positive factor and the rest."""
    match expr:
        case Apply("mul", (a, b)):
            for rest, factor in ((a, b), (b, a)):
                if isinstance(rest, Tile) and scalar(factor) and positive_scalar(factor):
                    return Hoisted(rest, factor)
        case Apply("where", (condition, chosen, other)) if other == LOWEST:
            inner = _parts(chosen)
            if inner:
                return Hoisted(Apply("where", (condition, inner.of, other)), inner.factor)
    return None


def _readers(launch: Launch, name: str) -> Iterator[object]:
    for s in launch.statements():
        if any(t.value == name for t in tiles(s)):
            yield s


def _waits(s: object, name: str) -> bool:
    """Whether a statement reads a value only in a maximum, or minus something in an exponential."""
    if isinstance(s, Reduction):
        return s.reduction == "max"
    if not isinstance(s, Map):
        return False
    reads = sum(isinstance(n, Tile) and n.value == name for n in s.expression.walk())
    fine = sum(
        isinstance(n, Apply) and n.function == "exp" and _difference(n.args[0], name)
        for n in s.expression.walk()
    )
    return reads == fine


def _difference(expr: Expr, name: str) -> bool:
    match expr:
        case Apply("sub", (Tile(value), other)):
            return value == name and not any(
                isinstance(n, Tile) and n.value == name for n in other.walk()
            )
    return False
