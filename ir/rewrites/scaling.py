"""Determines by which factor each tensor grows when some expressions of the spec are scaled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ir.contraction import indices
from ir.spec import FLOATS, Apply, Cast, Equation, Expr, Index, Number, Read, Reduce, Scan, Spec
from ir.visit import renamed

# By positions: the power of the factor c[positions] in a value.
Scale = Mapping[tuple[Expr, ...], int]

_NONE: Scale = {}
_LIKE_OPERANDS = ("add", "sub", "minimum", "maximum")
_LIKE_OPERAND = ("neg", "abs", "relu")


def unscaled(spec: Spec, sites: Mapping[Expr, Scale]) -> bool:
    """Whether every output is unchanged when each site, an expression, is multiplied by its scale.

    Scales are positive factors.
    """
    found = _Scales(sites)
    return all(found.add(e) for e in spec.equations) and all(
        found.known[t.name][1] == _NONE for t in spec.outputs
    )


@dataclass(frozen=True, slots=True)
class _Scales:
    """The scales of the tensors so far, each with its indices."""

    sites: Mapping[Expr, Scale]
    known: dict[str, tuple[tuple[str, ...], Scale]] = field(default_factory=dict)

    def add(self, e: Equation) -> bool:
        """Finds the scale of an equation's tensor; returns False if it has none."""
        found = self.of(e.value)
        plain = all(isinstance(x, Index) for x in e.at) and not e.accumulate
        if found is None or (found and not (plain and _names(found) <= set(e.indices))):
            return False
        self.known[e.target] = e.indices, found
        return True

    def of(self, expr: Expr) -> Scale | None:
        """The scale of an expression, None if it has none as a whole."""
        if expr in self.sites:
            inside = [self.of(c) for c in expr.children()]
            return self.sites[expr] if all(s == _NONE for s in inside) else None
        match expr:
            case Read():
                return self._read(expr)
            case Reduce(reduction, body, over) if reduction in ("sum", "max", "min"):
                return self._reduced(body, set(over), expr)
            case Scan(reduction, body, along) if reduction in ("sum", "max", "min"):
                return self._reduced(body, {along}, expr)
            case Cast(dtype, value) if dtype in FLOATS:
                return self.of(value)
            case Apply():
                return self._apply(expr)
        return self._fixed(expr)

    def _fixed(self, expr: Expr) -> Scale | None:
        """The scale of an expression that must not be scaled: none, if nothing in it is scaled."""
        return _NONE if all(self.of(c) == _NONE for c in expr.children()) else None

    def _reduced(self, body: Expr, over: set[str], whole: Reduce | Scan) -> Scale | None:
        found = self.of(body)
        if found is None or _names(found) & over:
            return None
        ranges = whole.ranges if isinstance(whole, Reduce) else ()
        return found if all(self._fixed(r) == _NONE for r in ranges) else None

    def _read(self, read: Read) -> Scale | None:
        if any(self.of(p) != _NONE for p in read.at):
            return None
        names, scale = self.known.get(read.tensor, ((), _NONE))
        if not scale:
            return _NONE
        here = dict(zip(names, read.at, strict=True))
        moved = {tuple(renamed(x, here) for x in at): n for at, n in scale.items()}
        return moved if read.pad in (None, 0.0) else None

    def _apply(self, expr: Apply) -> Scale | None:
        name, args = expr.function, expr.args
        if name == "where":
            return self._alike(args[1:]) if self.of(args[0]) == _NONE else None
        if name in _LIKE_OPERANDS:
            return self._alike(args)
        scales = [s for a in args if (s := self.of(a)) is not None]
        if len(scales) < len(args):
            return None
        if name in _LIKE_OPERAND:
            return scales[0]
        if name in ("mul", "div"):
            return _together(scales[0], scales[1], 1 if name == "mul" else -1)
        if name == "square":
            return _together(scales[0], scales[0], 1)
        if name == "pow" and isinstance(args[1], Number) and type(args[1].value) is int:
            return {at: n * args[1].value for at, n in scales[0].items() if args[1].value}
        return _NONE if all(s == _NONE for s in scales) else None

    def _alike(self, args: tuple[Expr, ...]) -> Scale | None:
        """The common scale of the operands; a 0 fits every scale."""
        scales = [self.of(a) for a in args if not _zero(a)]
        return (
            scales[0]
            if scales and all(s == scales[0] for s in scales)
            else (None if scales else _NONE)
        )


def _zero(expr: Expr) -> bool:
    return isinstance(expr, Number) and expr.value == 0


def _names(scale: Scale) -> set[str]:
    return {i for at in scale for x in at for i in indices(x)}


def _together(a: Scale, b: Scale, sign: int) -> Scale:
    counts = {at: a.get(at, 0) + sign * b.get(at, 0) for at in (*a, *b)}
    return {at: n for at, n in counts.items() if n}
