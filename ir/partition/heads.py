"""Splits the head index of grouped-query chains, so that every position is a plain index.

before: s[h, n] = sum(q[h, d] * k[h // 4, n, d], d), ...
after:  s_parts[g, r, n] = sum(q_parts[g, r, d] * k[g, n, d], d), ...

`q_parts` is a view of `q` as [.., h // 4, h % 4, ..]. The query heads of a group are then rows of
one matmul, which reads their keys once. Views between the equations of a chain become positions in
the same way, and so do expanded tensors that are only read under another shape. The memory layout
does not change.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from math import inf, prod
from typing import cast

from ir.affine import affine
from ir.partition.chains import Chain, chains
from ir.partition.mixed_radix import is_sum, simplified, splits
from ir.partition.views import fresh, is_plain, is_pointwise, root, through_views
from ir.sizes import shape
from ir.sizes import value as number
from ir.spec import Equation, Expr, Index, Number, Range, Read, Reduce, Spec
from ir.verify import facts
from ir.visit import pruned, rebuilt, renamed

MOST_COUNTED = 48  # nodes of a mask that each reader recomputes
ROUNDS = 8  # of splitting; one split can make another one necessary

_Dim = tuple[str, int]  # a tensor and a dimension of it


def with_split_heads(spec: Spec, aliases: Mapping[str, str]) -> tuple[Spec, dict[str, str]]:
    """Splits the shared indices of the chains of a literal spec; returns the spec and its
    aliases."""
    aliases = dict(aliases)
    for chain in tuple(chains(spec, aliases)):
        made = _Splitting(spec, aliases, _targets(chain)).made()
        if made is not None:
            spec, aliases = made
    there = {e.target for e in spec.equations}
    return spec, {name: source for name, source in aliases.items() if name in there}


def split(
    spec: Spec, aliases: Mapping[str, str], chain: Chain, whole: Collection[str]
) -> tuple[Spec, dict[str, str]] | None:
    """Splits the indices of one chain where its positions need that; returns the spec and its
    aliases.

    None if nothing changes, if a quotient would be left, or if an index of `whole` would be split.
    """
    made = _Splitting(spec, dict(aliases), _targets(chain)).made(whole)
    if made is None:
        return None
    there = {e.target for e in made[0].equations}
    return made[0], {name: source for name, source in made[1].items() if name in there}


def split_apart(
    spec: Spec, aliases: Mapping[str, str], own: tuple[str, ...]
) -> tuple[Spec, dict[str, str]] | None:
    """Splits the indices of some equations where their positions need that; returns the spec and
    its aliases.

    None if nothing changes, or if a quotient would be left.

    own: the targets of the equations, in the order of the spec.
    """
    made = _Splitting(spec, aliases, own).made()
    if made is None:
        return None
    there = {e.target for e in made[0].equations}
    return made[0], {name: source for name, source in made[1].items() if name in there}


@dataclass(frozen=True, slots=True)
class _Part:
    """A part (digit) of a split index."""

    name: str
    stride: int  # values of the index between two neighbouring values of the part
    extent: int


class _Splitting:
    """Splits the indices of some equations, such as those of one chain."""

    def __init__(self, spec: Spec, aliases: Mapping[str, str], own: tuple[str, ...]):
        self.spec, self.aliases = spec, aliases
        self.known = facts(spec)
        self.equations = {e.target: e for e in spec.equations}
        self.own = own
        self.inside = set(self.own)
        ranges = self.known.ranges
        self.extents = {i: number(r.high, {}) for i, r in ranges.items() if not r.jagged}
        self.nodes: dict[str, float] = {}  # by tensor: see `_counted`
        # union-find over indices and dimensions that are split alike
        self.parent: dict[str | _Dim, str | _Dim] = {}
        self.inner: dict[str | _Dim, set[int]] = {}  # by root: the sizes of inner parts
        # dimensions that several indices run through, each with an inner size
        self.composed: list[tuple[_Dim, int]] = []
        self.taken = {*self.equations, *(t.name for t in spec.inputs), *ranges}
        self.shown: dict[tuple[str, tuple[tuple[int, ...], ...]], Equation] = {}

    def made(self, whole: Collection[str] = ()) -> tuple[Spec, dict[str, str]] | None:
        """The spec and its aliases.

        None if nothing is to be split, if a quotient would be left, or if an index of `whole` is
        split.
        """
        bodies = {t: self._seen(self.equations[t].value) for t in self.own}
        views = any(t in self.aliases for t in self.own)
        changed = any(bodies[t] != self.equations[t].value for t in self.own)
        if not all(is_plain(self.equations[t]) for t in self.own):
            return None
        self._join(bodies)
        for _ in range(ROUNDS):
            self.composed = []
            found = {t: self._split(self.equations[t], bodies[t]) for t in self.own}
            wanted = [w for t in self.own for w in self._wanted(self.equations[t], found[t])]
            new = [self._add(index, inner) for index, inner in wanted]
            new += [self._add(dim, inner) for dim, inner in self.composed]
            if not any(new):
                break
        sums = all(is_sum(p) for e in found.values() for n in e.reads() for p in n.at)
        if not sums or not self._chained() or any(self.inner.get(self._root(i)) for i in whole):
            return None
        made = self._assembled(found)
        return made if self.inner or self.shown or views or changed else None

    def _seen(self, expr: Expr) -> Expr:
        """Replaces reads of views by reads of their sources, and recomputes masks that depend on
        indices alone."""
        made = rebuilt(expr, self._seen)
        if not isinstance(made, Read) or made.pad is not None or made.tensor in self.inside:
            return made
        seen = root(made.tensor, self.aliases)
        source = self.equations.get(seen)
        if source is None or not self._counted(seen) <= MOST_COUNTED:
            if seen == made.tensor or source is None or not _no_memory(source):
                return made
        name, at = made.tensor, made.at
        while name != seen:
            view = self.equations[name]
            shown = cast(Read, renamed(view.value, dict(zip(view.indices, at, strict=True))))
            name, at = shown.tensor, tuple(simplified(p, self.extents) for p in shown.at)
        made = renamed(source.value, dict(zip(source.indices, at, strict=True)))
        return self._seen(made) if any(isinstance(n, Read) for n in made.walk()) else made

    def _counted(self, tensor: str) -> float:
        """The number of nodes that compute a tensor from indices alone, such as a mask.

        Infinity for all other tensors.
        """
        if tensor not in self.nodes:
            e = self.equations.get(self.aliases.get(tensor, tensor))
            own = e is not None and not e.accumulate and is_pointwise(e.value)
            self.nodes[tensor] = inf  # holds while sources are counted: a recurrence reads itself
            if e is not None and own:
                sources = sum(map(self._counted, e.sources()))
                self.nodes[tensor] = sources + len(tuple(e.value.walk()))
        return self.nodes[tensor]

    def _extent(self, index: str) -> int:
        return self.extents[index]

    def _root(self, one: str | _Dim) -> str | _Dim:
        while one in self.parent:
            one = self.parent[one]
        return one

    def _join(self, bodies: Mapping[str, Expr]) -> None:
        """Unites the indices and dimensions that always have the same value, so that they are split
        alike."""
        for t in self.own:
            pairs = list(zip(self.equations[t].indices, ((t, d) for d in range(99)), strict=False))
            for n in bodies[t].walk():
                if isinstance(n, Read) and n.tensor in self.inside:
                    pairs += [
                        (p.name, (n.tensor, d)) for d, p in enumerate(n.at) if isinstance(p, Index)
                    ]
            for index, dim in pairs:
                a, b = self._root(index), self._root(dim)
                if a != b:
                    self.parent[a] = b

    def _add(self, one: str | _Dim, inner: int) -> bool:
        """Records a split of an index or dimension; returns whether it is new."""
        found = self.inner.setdefault(self._root(one), set())
        new = inner not in found
        found.add(inner)
        return new

    def _chained(self) -> bool:
        """Whether the inner sizes of each index divide each other."""
        for found in self.inner.values():
            sizes = sorted(found)
            if any(b % a for a, b in zip(sizes, sizes[1:], strict=False)):
                return False
        return True

    def _parts(self, one: str | _Dim, name: str, extent: int) -> list[_Part]:
        """The parts of an index or dimension, outermost first."""
        strides = [1, *sorted(self.inner.get(self._root(one), ()))]
        ends = [*strides[1:], extent]
        parts = [
            _Part(f"{name}_{n}" if len(strides) > 1 else name, stride, end // stride)
            for n, (stride, end) in enumerate(zip(strides, ends, strict=True))
        ]
        return parts[::-1]

    def _split(self, e: Equation, body: Expr) -> Equation:
        """Rewrites an equation in terms of the parts of its indices."""
        reduced = {i for n in (body,) if isinstance(n, Reduce) for i in n.over}
        names = dict.fromkeys((*e.indices, *_named(body), *reduced))
        parts = {i: self._parts(i, i, self._extent(i)) for i in names}
        extents = {p.name: p.extent for found in parts.values() for p in found}
        whole = {i: _whole(found) for i, found in parts.items()}
        value = renamed(body, whole)
        if isinstance(value, Reduce) and isinstance(body, Reduce):
            over = [p for i in body.over for p in parts[i]]
            ranges = tuple(Range(p.name, Number(0), Number(p.extent)) for p in over)
            value = replace(value, over=tuple(p.name for p in over), ranges=ranges)
        at = [p for i in e.indices for p in parts[i]]
        return replace(
            e,
            at=tuple(Index(p.name) for p in at),
            sizes=tuple(Number(p.extent) for p in at),
            value=self._positions(value, extents),
        )

    def _positions(self, expr: Expr, extents: Mapping[str, int]) -> Expr:
        """Rewrites the reads of the split tensors to one position per part of a dimension."""
        made = rebuilt(expr, lambda part: self._positions(part, extents))
        if not isinstance(made, Read):
            return made
        at: list[Expr] = []
        for d, position in enumerate(made.at):
            size = number(self.known.tensors[made.tensor].shape[d], {})
            parts = self._parts((made.tensor, d), "", size) if made.tensor in self.inside else []
            if not parts:
                at.append(simplified(position, extents))
            for part in parts:
                one = simplified(_digit(position, part, part is parts[0]), extents)
                at.append(one)
                self.composed += [((made.tensor, d), n * part.stride) for n in _inner(one, part)]
        return replace(made, at=tuple(at))

    def _wanted(self, e: Equation, made: Equation) -> Iterator[tuple[str, int]]:
        """The splits of an equation's own indices that its positions need."""
        names = dict.fromkeys((*e.indices, *_named(e.value), *e.reduced))
        parts = {p.name: (i, p) for i in names for p in self._parts(i, i, self._extent(i))}
        extents = {name: p.extent for name, (_, p) in parts.items()}
        for position in (p for n in made.reads() for p in n.at):
            for name, inner in splits(position, extents):
                index, part = parts[name]
                yield index, inner * part.stride

    def _assembled(self, found: Mapping[str, Equation]) -> tuple[Spec, dict[str, str]]:
        names: dict[str, str] = {}
        for t in self.own:
            if len(found[t].at) > len(self.equations[t].at):
                names[t] = fresh(f"{t}_parts", self.taken)
        outside = {
            s for e in self.spec.equations if e.target not in self.inside for s in e.sources()
        }
        outside |= {t.name for t in self.spec.outputs}
        aliases = {a: b for a, b in self.aliases.items() if a not in self.inside}
        equations: list[Equation] = []
        for e in self.spec.equations:
            if e.target not in self.inside:
                equations.append(e)
                continue
            made = found[e.target]
            value = self._shown(_renaming(made.value, names), _extents(made))
            equations += [x for x in self.shown.values() if x not in equations]
            equations.append(replace(made, target=names.get(e.target, e.target), value=value))
            if e.target in names and e.target in outside:
                equations.append(self._joined(e, names[e.target]))
                aliases[e.target] = names[e.target]
        aliases |= {x.target: x.sources()[0] for x in self.shown.values()}
        spec = pruned(replace(self.spec, equations=tuple(equations)))
        return through_views(spec, aliases), aliases

    def _joined(self, e: Equation, parts: str) -> Equation:
        """The view that shows a split tensor in its original shape."""
        at = [
            _digit(Index(i), p, p.stride * p.extent == self._extent(i))
            for i in e.indices
            for p in self._parts(i, i, self._extent(i))
        ]
        sizes = tuple(Number(self._extent(i)) for i in e.indices)
        return replace(e, value=Read(parts, tuple(at)), sizes=sizes)

    def _shown(self, expr: Expr, extents: Mapping[str, int]) -> Expr:
        """Rewrites reads of memory to reads of a view at single indices, where there is such a
        view."""
        made = rebuilt(expr, lambda part: self._shown(part, extents))
        if (
            not isinstance(made, Read)
            or made.pad is not None
            or made.tensor not in self.known.tensors
        ):
            return made
        sizes = shape(self.known.tensors[made.tensor], {})
        terms = [_digits(p, size, extents) for p, size in zip(made.at, sizes, strict=True)]
        if all(len(t) == 1 for t in terms):
            return made
        dims = tuple(tuple(n for _, n in t) for t in terms)
        view = self.shown.get((made.tensor, dims))
        if view is None:
            view = self._view(made.tensor, dims)
            self.shown[made.tensor, dims] = view
        return Read(view.target, tuple(one for t in terms for one, _ in t))

    def _view(self, tensor: str, sizes: tuple[tuple[int, ...], ...]) -> Equation:
        """The equation of a view of a tensor with more dimensions."""
        name = fresh(f"{tensor}_parts", self.taken)
        flat = [n for dim in sizes for n in dim]
        indices = [fresh(f"{name}_{n}", self.taken) for n in range(len(flat))]
        left = iter(indices)
        at: list[Expr] = []
        for dim in sizes:
            strides = [prod(dim[n + 1 :]) for n in range(len(dim))]
            at.append(_whole([_Part(next(left), s, n) for s, n in zip(strides, dim, strict=True)]))
        return Equation(
            name,
            tuple(Index(i) for i in indices),
            Read(tensor, tuple(at)),
            sizes=tuple(Number(n) for n in flat),
        )


def _targets(chain: Chain) -> tuple[str, ...]:
    return (*chain.members, *chain.after)


def _no_memory(e: Equation) -> bool:
    """Whether an equation computes nothing from data: it is a view, or depends on indices alone."""
    if e.accumulate or not is_pointwise(e.value):
        return False
    if isinstance(e.value, Read):
        return e.value.pad is None
    return not any(isinstance(n, Read) for n in e.value.walk())


def _named(expr: Expr) -> Iterator[str]:
    return (n.name for n in expr.walk() if isinstance(n, Index))


def _whole(parts: list[_Part]) -> Expr:
    """The index that its parts compose."""
    made: Expr | None = None
    for p in parts:
        one = Index(p.name) if p.stride == 1 else Index(p.name) * p.stride
        made = one if made is None else made + one
    assert made is not None
    return made


def _digit(index: Expr, part: _Part, first: bool) -> Expr:
    """The digit of an index that a part is."""
    one = index if part.stride == 1 else index // part.stride
    return one if first else one % part.extent


def _inner(position: Expr, part: _Part) -> Iterator[int]:
    """The inner sizes that readers of a dimension need its part to be split by."""
    found = affine(position)
    if found is not None and len(found.terms) > 1:
        yield from (f for _, f in found.terms if f > 1 and part.extent % f == 0)


def _digits(position: Expr, size: int, extents: Mapping[str, int]) -> list[tuple[Expr, int]]:
    """The indices that compose a position, outermost first, each with its number of values.

    A constant outermost digit comes before them where they run through only one of several such
    parts of the dimension. The position itself is returned if it is not composed in this way.
    """
    found = affine(position)
    alone = [(position, size)]
    if found is None or len(found.terms) < 2 or not isinstance(found.offset, Number):
        return alone
    terms = sorted(found.terms, key=lambda term: -term[1])
    part = stride = terms[0][1] * extents.get(terms[0][0], 0)
    for index, factor in terms:
        if factor <= 0 or factor * extents.get(index, 0) != stride:
            return alone
        stride = factor
    start = int(found.offset.value)
    if stride != 1 or size % part or start % part or not 0 <= start < size:
        return alone
    digits: list[tuple[Expr, int]] = [(Index(i), extents[i]) for i, _ in terms]
    return digits if part == size else [(Number(start // part), size // part), *digits]


def _extents(e: Equation) -> dict[str, int]:
    """By index of a split equation: its number of values."""
    found = {i: number(s, {}) for i, s in zip(e.indices, e.sizes, strict=True)}
    if isinstance(e.value, Reduce):
        found |= {r.index: number(r.high, {}) for r in e.value.ranges}
    return found


def _renaming(expr: Expr, names: Mapping[str, str]) -> Expr:
    made = rebuilt(expr, lambda part: _renaming(part, names))
    if isinstance(made, Read) and made.tensor in names:
        return replace(made, tensor=names[made.tensor])
    return made
