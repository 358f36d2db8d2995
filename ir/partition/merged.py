"""Merges neighbouring dimensions that are always indexed together.

before: y[b, s, n] = sum(x[b, s, k] * w[n, k], k)    x: [B, S, K]
after:  y[b_s, n] = sum(x[b_s, k] * w[n, k], k)      x: [B * S, K]

Tensors are row-major, so no element moves. A tile can then span both dimensions, where it would end
with the inner one otherwise. Specs that differ only in how they divide a dimension become one
kernel.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from ir.sizes import shape
from ir.sizes import value as number
from ir.spec import Equation, Expr, Index, Number, Range, Read, Reduce, Scan, Spec, Tensor
from ir.verify import facts
from ir.visit import rebuilt, reindexed

_Pair = tuple[str, str]  # an outer and an inner index
_POSITIONS = ("argmax", "argmin")  # reductions whose result is a position


def merged(spec: Spec) -> Spec:
    """Merges neighbouring dimensions of a literal spec that are always indexed together.

    Dimensions of inputs and outputs merge as well. The sizes of targets and the ranges of
    reductions must be written out, as the partition does.
    """
    while (found := _found(spec)) is not None:
        spec = found.applied(spec)
    return spec


@dataclass(frozen=True, slots=True)
class _Merge:
    """Pairs to merge: by equation, the index pairs; by tensor, the outer dimensions."""

    pairs: dict[str, set[_Pair]] = field(default_factory=dict)
    places: dict[str, set[int]] = field(default_factory=dict)

    def applied(self, spec: Spec) -> Spec:
        """The spec with the pairs merged."""

        def tensor(t: Tensor) -> Tensor:
            return replace(t, shape=_multiplied(t.shape, self.places.get(t.name, set())))

        return replace(
            spec,
            inputs=tuple(map(tensor, spec.inputs)),
            outputs=tuple(map(tensor, spec.outputs)),
            equations=tuple(map(self._equation, spec.equations)),
        )

    def _equation(self, e: Equation) -> Equation:
        places = self.places.get(e.target, set())
        value = self._value(e.value)
        inner = dict(self.pairs.get(e.target, ()))
        if isinstance(value, Reduce):
            value = _narrowed(value, inner)
        names = {i: f"{i}_{j}" for i, j in inner.items()}  # an index has one range in all equations

        def named(expr: Expr) -> Expr:
            return reindexed(expr, lambda i: names.get(i, i))

        at = tuple(named(self._value(p)) for p in _without_inner(e.at, places))
        return replace(e, at=at, value=named(value), sizes=_multiplied(e.sizes, places))

    def _value(self, expr: Expr) -> Expr:
        made = rebuilt(expr, self._value)
        if isinstance(made, Read) and made.tensor in self.places:
            return replace(made, at=_without_inner(made.at, self.places[made.tensor]))
        return made


def _narrowed(value: Reduce, inner: Mapping[str, str]) -> Reduce:
    """Drops the inner indices of a reduction and widens the ranges of the outer ones. inner: by
    outer index."""
    sizes = {r.index: r.high for r in value.ranges}

    def wide(r: Range) -> Range:
        return replace(r, high=_product(r.high, sizes[inner[r.index]])) if r.index in inner else r

    gone = set(inner.values())
    return replace(
        value,
        over=tuple(i for i in value.over if i not in gone),
        ranges=tuple(wide(r) for r in value.ranges if r.index not in gone),
    )


def _product(a: Expr, b: Expr) -> Number:
    return Number(number(a, {}) * number(b, {}))


def _without_inner(at: tuple[Expr, ...], outer: set[int]) -> tuple[Expr, ...]:
    return tuple(p for n, p in enumerate(at) if n - 1 not in outer)


def _multiplied(sizes: tuple[Expr, ...], outer: set[int]) -> tuple[Expr, ...]:
    """Multiplies the sizes at `outer` by the next sizes, and drops those."""
    return tuple(
        _product(size, sizes[n + 1]) if n in outer else size
        for n, size in enumerate(sizes)
        if n - 1 not in outer
    )


def _found(spec: Spec) -> _Merge | None:
    """The first pair that can be merged, with all pairs that must be merged then; None if there is
    none."""
    search = _Search(spec)
    for e in spec.equations:
        for pair in _neighbours(e):
            if found := search.merge(e, pair):
                return found
    return None


def _neighbours(e: Equation) -> Iterator[_Pair]:
    """Pairs of indices that are neighbours in the target, or in a tensor that is reduced."""
    reads = [r.at for r in e.reads()] if e.reduced else []
    for at in (e.at, *reads):
        for a, b in zip(at, at[1:], strict=False):
            if isinstance(a, Index) and isinstance(b, Index):
                yield a.name, b.name


class _Search:
    """Facts about the spec in which pairs are searched."""

    def __init__(self, spec: Spec):
        known = facts(spec)
        self.shapes = {name: shape(t, {}) for name, t in known.tensors.items()}
        self.sizes = {
            i: number(r.high, {})
            for i, r in known.ranges.items()
            if not (r.jagged or r.partial) and r.low == Number(0)
        }
        self.users: dict[str, list[Equation]] = {}  # by tensor: the equations that write or read it
        for e in spec.equations:
            for name in {e.target, *e.sources()}:
                self.users.setdefault(name, []).append(e)

    def merge(self, e: Equation, pair: _Pair) -> _Merge | None:
        """A pair of an equation with all pairs that depend on it; None if one of them cannot be
        merged."""
        found, todo = _Merge(), [(e, pair)]
        while todo:
            e, pair = todo.pop()
            if pair in found.pairs.setdefault(e.target, set()):
                continue
            found.pairs[e.target].add(pair)
            places = self._places(e, pair)
            if places is None:
                return None
            for tensor, place in places:
                own = found.places.setdefault(tensor, set())
                if place in own:
                    continue
                if own & {place - 1, place + 1}:
                    return None  # of three neighbours, two are merged first
                own.add(place)
                for user in self.users[tensor]:
                    for at in _positions(user, tensor):
                        a, b = at[place : place + 2]
                        if not (isinstance(a, Index) and isinstance(b, Index)):
                            return None
                        todo.append((user, (a.name, b.name)))
        return found

    def _places(self, e: Equation, pair: _Pair) -> set[tuple[str, int]] | None:
        """The tensors of an equation with the dimensions at which a pair occurs.

        None if the pair does not always cover two neighbouring dimensions whole, or if its value is
        used.
        """
        if pair[0] == pair[1] or not set(pair) <= set(self.sizes):
            return None
        bound = [set(pair) & set(names) for names in (e.indices, e.reduced)]
        if set(pair) not in bound or _by_position(e, pair):
            return None
        wanted = tuple(self.sizes[i] for i in pair)
        found, seen = set(), 0
        for tensor in {e.target, *e.sources()}:
            for at in _positions(e, tensor):
                for n, p in enumerate(at):
                    if p != Index(pair[0]):
                        continue
                    if (
                        at[n + 1 : n + 2] != (Index(pair[1]),)
                        or self.shapes[tensor][n : n + 2] != wanted
                    ):
                        return None
                    found.add((tensor, n))
                    seen += 2
        nodes = (x for p in (*e.at, e.value) for x in p.walk())
        used = sum(isinstance(x, Index) and x.name in pair for x in nodes)
        return found if used == seen else None


def _positions(e: Equation, tensor: str) -> Iterator[tuple[Expr, ...]]:
    """The positions at which an equation writes and reads a tensor."""
    if e.target == tensor:
        yield e.at
    for node in (x for p in (*e.at, e.value) for x in p.walk()):
        if isinstance(node, Read) and node.tensor == tensor:
            yield node.at


def _by_position(e: Equation, pair: _Pair) -> bool:
    """Whether an equation's value depends on the position along one index of a pair.

    That holds for scans, and for reductions whose result is a position.
    """
    match e.value:
        case Reduce(reduction=name, over=over):
            return name in _POSITIONS and pair[0] in over
        case Scan(along=along):
            return along in pair
    return False
