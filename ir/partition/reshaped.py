"""Computes an epilogue in the shape of its contraction, and makes the reshaped result a view.

before: c[p, n] = sum(...), v[b, s, n] = c[b * S + s, n], y[b, s, n] = gelu(v[b, s, n]) + x[b, s, n]
after:  c[p, n] = sum(...), y_flat[p, n] = gelu(c[p, n]) + x_flat[p, n], y[b, s, n] = y_flat[b * S + s, n]

`x_flat` is a view of `x`. The pointwise equations can then join the contraction as its epilogue.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import prod

from ir.contraction import contraction
from ir.partition.views import fresh, is_plain, is_pointwise, root
from ir.recurrence import recurrences
from ir.sizes import shape
from ir.spec import Equation, Expr, Index, Number, Read, Spec
from ir.verify import facts
from ir.visit import pruned, rebuilt

_Shape = tuple[int, ...]


def with_flat_epilogues(spec: Spec, aliases: Mapping[str, str]) -> tuple[Spec, dict[str, str]]:
    """Moves the epilogues of a literal spec to the shapes of their contractions; returns the spec
    and its aliases.

    aliases: by view, the tensor whose elements it shows in the same order under another shape.
    """
    made = _Moving(spec, aliases)
    for e in spec.equations:
        made.take(e)
    spec = pruned(replace(spec, equations=tuple(made.equations)))
    there = {e.target for e in spec.equations}
    return spec, {name: source for name, source in made.aliases.items() if name in there}


class _Moving:
    """Builds the equations of the rewritten spec, one after the other."""

    def __init__(self, spec: Spec, aliases: Mapping[str, str]):
        self.aliases = dict(aliases)
        self.equations: list[Equation] = []
        self.shapes = {name: shape(t, {}) for name, t in facts(spec).tensors.items()}
        self.taken = {*self.shapes, *(i for e in spec.equations for i in e.indices)}
        self.fixed = {*aliases, *(t for r in recurrences(spec) for t in r.targets)}
        # Contractions, and pointwise equations of the same shape that read one.
        self.contracted: set[str] = set()

    def take(self, e: Equation) -> None:
        """Adds an equation, in another shape where that is possible."""
        if e.accumulate or not is_plain(e) or e.target in self.fixed:
            self.equations.append(e)
        elif not is_pointwise(e.value):
            self.equations.append(e)
            if contraction(e) is not None:
                self.contracted.add(e.target)
        else:
            self._take_pointwise(e)

    def _take_pointwise(self, e: Equation) -> None:
        own = [root(n.tensor, self.aliases) for n in e.reads() if n.at == e.at and n.pad is None]
        read = [tensor for tensor in own if tensor in self.contracted]
        if read and self.shapes[read[0]] != self.shapes[e.target]:
            if self._moved(e, self.shapes[read[0]]):
                return
        elif read:
            self.contracted.add(e.target)
        self.equations.append(e)

    def _moved(self, e: Equation, to: _Shape) -> bool:
        """Adds an equation in another shape; returns whether that is possible."""
        old = self.shapes[e.target]
        alike = _alike(old, to)
        last = set(e.indices[len(old) - alike :])
        if prod(old) != prod(to) or not self._stays(e.value, e.at, last, old):
            return False
        new = [fresh(f"{e.target}_{d}", self.taken) for d in range(len(to) - alike)]
        at = (*map(Index, new), *e.at[len(old) - alike :])
        flat = fresh(f"{e.target}_flat", self.taken)
        value = self._under(e.value, e.at, at, to)
        self._add(Equation(flat, at, value, sizes=tuple(map(Number, to))), to)
        self.contracted.add(flat)
        self.equations.append(view(e.target, e.at, old, flat, to))
        self.aliases[e.target] = flat
        return True

    def _stays(self, expr: Expr, at: tuple[Expr, ...], last: set[str], old: _Shape) -> bool:
        """Whether an expression can be computed in another shape.

        Each tensor that it reads must have the old shape, or be read by trailing indices that stay. A
        tensor that is larger, of which it reads a part at the same indices, has another order.
        """
        if isinstance(expr, Read) and expr.at == at:
            return expr.pad is None and self.shapes[expr.tensor] == old
        if isinstance(expr, Index):
            return expr.name in last
        return all(self._stays(part, at, last, old) for part in expr.children())

    def _under(self, expr: Expr, old: tuple[Expr, ...], at: tuple[Expr, ...], to: _Shape) -> Expr:
        """Replaces reads at `old` by reads at `at` of views in the new shape."""
        if isinstance(expr, Read) and expr.at == old:
            return Read(self._shown(expr.tensor, at, to), at)
        return rebuilt(expr, lambda part: self._under(part, old, at, to))

    def _shown(self, tensor: str, at: tuple[Expr, ...], to: _Shape) -> str:
        """The tensor or view that has another tensor's elements in a given shape."""
        seen = root(tensor, self.aliases)
        if self.shapes[seen] == to:
            return seen
        name = fresh(f"{tensor}_flat", self.taken)
        indices = tuple(Index(fresh(f"{name}_{d}", self.taken)) for d in range(len(to)))
        self._add(view(name, indices, to, tensor, self.shapes[tensor]), to)
        self.aliases[name] = tensor
        return name

    def _add(self, e: Equation, to: _Shape) -> None:
        self.equations.append(e)
        self.shapes[e.target] = to


def _alike(a: _Shape, b: _Shape) -> int:
    """The number of trailing dimensions that two shapes have in common."""
    count = 0
    for x, y in zip(reversed(a), reversed(b), strict=False):
        if x != y:
            break
        count += 1
    return count


def view(target: str, at: tuple[Expr, ...], own: _Shape, source: str, shown: _Shape) -> Equation:
    """The equation of a view that shows another tensor's elements in the same order."""
    positions = tuple(_positions(at, own, shown))
    return Equation(target, at, Read(source, positions), sizes=tuple(map(Number, own)))


def _positions(at: tuple[Expr, ...], own: _Shape, shown: _Shape) -> Iterator[Expr]:
    alike = _alike(own, shown)
    leading = own[: len(own) - alike]
    flat: Expr = Number(0)
    for n, index in enumerate(at[: len(leading)]):
        flat = index if n == 0 else flat * leading[n] + index
    rest = shown[: len(shown) - alike]
    for d in range(len(rest)):
        inner = prod(rest[d + 1 :])
        one = flat if inner == 1 else flat // inner
        yield one if d == 0 else one % rest[d]
    yield from at[len(leading) :]
