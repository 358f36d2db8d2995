"""Reshaped results: pointwise equations are computed under the shape of the contraction that they read
through an alias, and their own shape becomes the alias.

before: c[p, n] = sum(...), v[b, s, n] = c[b * S + s, n], y[b, s, n] = gelu(v[b, s, n]) + x[b, s, n]
after:  c[p, n] = sum(...), y_flat[p, n] = gelu(c[p, n]) + x_flat[p, n], y[b, s, n] = y_flat[b * S + s, n]

`x_flat` shows the memory of `x`. So the equations join the contraction as its epilogue. The contraction may be
seen with its dimensions in another order, too, as the phases of a transposed convolution are:

before: c[r, p] = sum(...), a[p, r] = c[r, p], v[i] = a[i // 2, i % 2], y[i] = tanh(v[i])
after:  c[r, p] = sum(...), a[p, r] = c[r, p], y_flat[p, r] = tanh(a[p, r]), y[i] = y_flat[i // 2, i % 2]
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
    """A literal spec with the epilogues of contractions under their shapes, and its aliases.

    aliases: tensors that show another tensor's elements, in its order, under another shape.
    """
    made = _Moving(spec, aliases)
    for e in spec.equations:
        made.take(e)
    spec = pruned(replace(spec, equations=tuple(made.equations)))
    there = {e.target for e in spec.equations}
    return spec, {name: source for name, source in made.aliases.items() if name in there}


class _Moving:
    """The equations of a spec, one after the other."""

    def __init__(self, spec: Spec, aliases: Mapping[str, str]):
        self.aliases = dict(aliases)
        self.equations: list[Equation] = []
        self.shapes = {name: shape(t, {}) for name, t in facts(spec).tensors.items()}
        self.taken = {*self.shapes, *(i for e in spec.equations for i in e.indices)}
        self.fixed = {*aliases, *(t for r in recurrences(spec) for t in r.targets)}
        # Contractions, also in another order, and pointwise equations of the same shape that read one.
        self.contracted: set[str] = set()
        self.later: set[str] = set()  # what depends on one of these and is none

    def take(self, e: Equation) -> None:
        """Adds an equation, moved where that is possible."""
        self._take(e)
        if e.target not in self.contracted and any(map(self._depends, e.sources())):
            self.later.add(e.target)

    def _take(self, e: Equation) -> None:
        if e.accumulate or not is_plain(e) or e.target in self.fixed:
            self.equations.append(e)
        elif not is_pointwise(e.value):
            self.equations.append(e)
            if contraction(e) is not None:
                self.contracted.add(e.target)
        else:
            self._take_pointwise(e)

    def _take_pointwise(self, e: Equation) -> None:
        if self._turned(e):
            self.contracted.add(e.target)
        own = [root(n.tensor, self.aliases) for n in e.reads() if n.at == e.at and n.pad is None]
        read = [tensor for tensor in own if tensor in self.contracted]
        if read and self.shapes[read[0]] != self.shapes[e.target]:
            if self._moved(e, self.shapes[read[0]]):
                return
        elif read:
            self.contracted.add(e.target)
        self.equations.append(e)

    def _turned(self, e: Equation) -> bool:
        """Whether an equation is a contraction with its dimensions in another order."""
        read = e.value
        if not isinstance(read, Read) or read.pad is not None or read.tensor not in self.contracted:
            return False
        return len(read.at) == len(e.at) and set(read.at) == set(e.at)

    def _moved(self, e: Equation, to: _Shape) -> bool:
        """Whether an equation was added under another shape."""
        old = self.shapes[e.target]
        if prod(old) != prod(to):
            return False
        first, last = _alike(old, to)
        if any(r.at != e.at and self._late(r.tensor) for r in e.reads()):
            first = 0  # such as the mean of a row, which is known only after all of the contraction
        stays = {*e.indices[:first], *e.indices[len(old) - last :]}
        if not _stays(e.value, e.at, stays):
            return False
        new = [fresh(f"{e.target}_{d}", self.taken) for d in range(len(to) - first - last)]
        at = (*e.at[:first], *map(Index, new), *e.at[len(old) - last :])
        flat = fresh(f"{e.target}_flat", self.taken)
        value = self._under(e.value, e.at, at, to)
        self._add(Equation(flat, at, value, sizes=tuple(map(Number, to))), to)
        self.contracted.add(flat)
        self.equations.append(_view(e.target, e.at, old, flat, to))
        self.aliases[e.target] = flat
        return True

    def _depends(self, tensor: str) -> bool:
        return root(tensor, self.aliases) in self.contracted or self._late(tensor)

    def _late(self, tensor: str) -> bool:
        return root(tensor, self.aliases) in self.later or tensor in self.later

    def _under(self, expr: Expr, old: tuple[Expr, ...], at: tuple[Expr, ...], to: _Shape) -> Expr:
        """An expression whose reads at `old` are at `at` of tensors of the new shape."""
        if isinstance(expr, Read) and expr.at == old:
            return Read(self._shown(expr.tensor, at, to), at)
        return rebuilt(expr, lambda part: self._under(part, old, at, to))

    def _shown(self, tensor: str, at: tuple[Expr, ...], to: _Shape) -> str:
        """The name of a tensor of a shape that has the elements of another."""
        seen = root(tensor, self.aliases)
        if self.shapes[seen] == to:
            return seen
        name = fresh(f"{tensor}_flat", self.taken)
        indices = tuple(Index(fresh(f"{name}_{d}", self.taken)) for d in range(len(to)))
        self._add(_view(name, indices, to, tensor, self.shapes[tensor]), to)
        self.aliases[name] = tensor
        return name

    def _add(self, e: Equation, to: _Shape) -> None:
        self.equations.append(e)
        self.shapes[e.target] = to


def _alike(a: _Shape, b: _Shape) -> tuple[int, int]:
    """How many first dimensions, and how many of the others at the end, two shapes have in common."""
    last = _common(a[::-1], b[::-1])
    return _common(a[: len(a) - last], b[: len(b) - last]), last


def _common(a: _Shape, b: _Shape) -> int:
    """How many first dimensions two shapes have in common."""
    count = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        count += 1
    return count


def _stays(expr: Expr, at: tuple[Expr, ...], kept: set[str]) -> bool:
    """Whether an expression can be computed under another shape: all that it reads has the old shape, or
    is read by indices that stay."""
    if isinstance(expr, Read) and expr.at == at:
        return expr.pad is None
    if isinstance(expr, Index):
        return expr.name in kept
    return all(_stays(part, at, kept) for part in expr.children())


def _view(target: str, at: tuple[Expr, ...], own: _Shape, source: str, shown: _Shape) -> Equation:
    """The equation of a tensor that shows another's elements in their order."""
    positions = tuple(_positions(at, own, shown))
    return Equation(target, at, Read(source, positions), sizes=tuple(map(Number, own)))


def _positions(at: tuple[Expr, ...], own: _Shape, shown: _Shape) -> Iterator[Expr]:
    first, last = _alike(own, shown)
    yield from at[:first]
    middle = slice(first, len(own) - last)
    flat: Expr = Number(0)
    for n, (index, size) in enumerate(zip(at[middle], own[middle], strict=True)):
        flat = index if n == 0 else flat * size + index
    rest = shown[first : len(shown) - last]
    for d in range(len(rest)):
        inner = prod(rest[d + 1 :])
        one = flat if inner == 1 else flat // inner
        yield one if d == 0 else one % rest[d]
    yield from at[len(own) - last :]
