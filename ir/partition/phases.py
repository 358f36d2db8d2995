"""Reduces the results of a transposed convolution phase by phase, before they are interleaved.

A transposed convolution with a stride is one convolution whose channels contain the phases. Its
reader interleaves them:

before: c[b, q, i, j] = sum(x[b, k, i + r, j + s] * w[q, r, s, k], k, r, s)
        y[b, o, i, j] = tanh(c[b, (i % 2 * 2 + j % 2) * O + o, i // 2, j // 2]), m[b, i, j] = min(y[b, o, i, j], o)
after:  c[b, p, o, i, j] = sum(x[b, k, i + r, j + s] * w_apart[p, o, r, s, k], k, r, s)
        y_apart[b, p, o, i, j] = tanh(c[b, p, o, i, j]), m_apart[b, p, i, j] = min(y_apart[b, p, o, i, j], o)
        m[b, i, j] = m_apart[b, i % 2 * 2 + j % 2, i // 2, j // 2]

`w_apart` is a view of `w`. The reduction can then be part of the convolution's kernel, and only its
result is interleaved. A sum over all pixels needs no interleaving at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TypeVar

from ir.contraction import indices
from ir.partition.channels_last import convolution_parts
from ir.partition.groups import suits_tile
from ir.partition.reshaped import view
from ir.partition.views import fresh, is_plain, is_pointwise, through_views
from ir.sizes import shape
from ir.sizes import value as number
from ir.spec import Apply, Equation, Expr, Facts, Index, Number, Range, Read, Reduce, Spec
from ir.verify import facts
from ir.visit import pruned, rebuilt, reindexed, renamed

ORDERLESS = ("sum", "max", "min")
# role of the channel dimension; the dimensions before it have lower roles, pixel dimensions roles
# from 0 on
CHANNEL = -1

_T = TypeVar("_T")


def with_phases_apart(spec: Spec, aliases: Mapping[str, str]) -> tuple[Spec, dict[str, str]]:
    """Reduces the phases of transposed convolutions separately; returns the spec and its aliases.

    spec: a literal spec.
    aliases: by view, the tensor whose memory it shows.
    """
    found = dict(aliases)
    for e in spec.equations:
        if e.target in found or e.accumulate or not is_plain(e):
            continue
        made = _phases(spec, e, found)
        if made is not None and made.pays:
            spec, found = made.spec(), {**found, **made.shown}
    there = {e.target for e in spec.equations}
    return spec, {name: source for name, source in found.items() if name in there}


@dataclass(frozen=True, slots=True)
class _Between:
    """How a read of a convolution interleaves the phases."""

    read: Read
    at: tuple[Index, ...]  # the reader's indices in the order of the dimensions of the tensor read
    channel: int  # the channel dimension
    channels: int  # number of channels of a phase
    phase: Expr  # over the pixel indices

    @property
    def names(self) -> tuple[str, ...]:
        """The pixel indices."""
        return tuple(i.name for i in self.at[self.channel + 1 :])

    def places(self, names: Mapping[str, Expr]) -> tuple[Expr, tuple[Expr, ...]]:
        """The phase and the pixel within it, in terms of other indices."""
        places = self.read.at[self.channel + 1 :]
        return renamed(self.phase, names), tuple(renamed(p, names) for p in places)


def _phases(spec: Spec, e: Equation, aliases: Mapping[str, str]) -> _Phases | None:
    """A convolution whose channels contain phases, with the equations over it; None for other
    equations."""
    parts = convolution_parts(e)
    kept = {t.name for t in spec.outputs} | {*aliases.values()}
    readers = [f for f in spec.equations if e.target in f.sources()]
    if parts is None or not parts[2] or e.target in kept or len(readers) != 1:
        return None
    x, w, _ = parts
    own = [d for d, i in enumerate(e.indices) if i in indices(w) and i not in indices(x)]
    reads = {r for r in readers[0].reads() if r.tensor == e.target}
    known = facts(spec)
    if len(own) != 1 or len(reads) != 1:
        return None
    between = _between(next(iter(reads)), own[0], known)
    if between is None:
        return None
    shapes = {name: shape(t, {}) for name, t in known.tensors.items()}
    made = _Phases(spec, e, w, between, shapes, aliases)
    for f in spec.equations:
        if f.target not in aliases and not f.accumulate and is_plain(f):
            if made.roles.keys() & set(f.sources()):
                made.take(f)
    made.pays = made.pays and not (made.stays_large() and made.periodic())
    return made


def _between(read: Read, channel: int, known: Facts) -> _Between | None:
    """None if a read does not interleave phases."""
    match read.at[channel]:
        case Apply("add", (Apply("mul", (phase, Number(each))), Index() as own)):
            pass
        case _:
            return None
    before, after = read.at[:channel], read.at[channel + 1 :]
    plain = [p for p in before if isinstance(p, Index)]
    names = [i for p in after for i in indices(p)]
    at = (*plain, own, *map(Index, names))
    if read.pad is not None or not len(at) == len(read.at) == len(set(at)) or not after:
        return None
    if len(plain) != channel or any(len(indices(p)) != 1 for p in after):
        return None
    if not set(indices(phase)) <= set(names) or known.ranges[own.name].high != Number(each):
        return None
    return _Between(read, at, channel, int(each), phase)


@dataclass(slots=True)
class _Phases:
    """A convolution whose channels contain phases, and the equations that each phase can compute
    alone."""

    before: Spec
    convolution: Equation
    filter: Read
    between: _Between
    shapes: Mapping[str, tuple[int, ...]]
    aliases: Mapping[str, str]
    # whether one of these equations is a reduction that a tile of results can compute
    pays: bool = False
    # by view that the rewrite adds: the tensor that it shows
    shown: dict[str, str] = field(default_factory=dict)
    # by tensor with split phases: the role of each dimension
    roles: dict[str, tuple[int, ...]] = field(default_factory=dict)
    # By target: the equations that replace its equation.
    made: dict[str, list[Equation]] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        spec = self.before
        self.taken |= {*self.shapes, *(i for e in spec.equations for i in (*e.indices, *e.reduced))}
        target, channel = self.convolution.target, self.between.channel
        self.roles[target] = tuple(range(-channel - 1, len(self.shapes[target]) - channel - 1))

    @property
    def extents(self) -> tuple[int, ...]:
        """The pixel extents of a phase."""
        return self.shapes[self.convolution.target][self.between.channel + 1 :]

    @property
    def count(self) -> int:
        """The number of phases."""
        return self.shapes[self.convolution.target][self.between.channel] // self.between.channels

    def take(self, e: Equation) -> None:
        """Computes an equation phase by phase, if that is possible."""
        names = self._names(e)
        reduced = set(e.reduced)
        if names is None or not self._alike(e, names):
            return
        own = {i: r for i, r in names.items() if i in reduced}
        places = {i for i, r in names.items() if r >= 0}
        all_of = {r for r in names.values() if r >= 0} == set(range(len(self.extents)))
        if not reduced:
            if all_of and set(names) == set(e.indices):
                self._move(e, names)
        elif not isinstance(e.value, Reduce) or reduced != set(own) or not all_of:
            return
        elif [*own.values()] == [CHANNEL]:
            if places <= set(e.indices) and e.value.reduction not in ("argmax", "argmin"):
                self.pays |= suits_tile(self.between.channels, several=True, looped=False)
                self._move(e, names)
        elif places <= reduced and all(r >= CHANNEL for r in own.values()):
            if e.value.reduction in ORDERLESS and self._each_once(e, names):
                self.pays |= suits_tile(self.extents[-1], several=True, looped=True)
                self._move(e, names)

    def stays_large(self) -> bool:
        """Whether a tensor of all channels and pixels is interleaved; its readers can do that
        themselves."""
        outputs = {t.name for t in self.before.outputs}
        read = {s for e in self.before.equations if e.target not in self.made for s in e.sources()}
        full = self.roles[self.convolution.target]
        return any(self.roles.get(t) == full for t in self.made if t in outputs | read)

    def periodic(self) -> bool:
        """Whether the extents of the results are whole multiples of the phases."""
        ranges = facts(self.before).ranges
        sizes = [number(ranges[i].high, {}) for i in self.between.names]
        return self._periodic(sizes)

    def spec(self) -> Spec:
        """The spec with split phases."""
        made: list[Equation] = []
        for e in self.before.equations:
            if e.target == self.convolution.target:
                made += self._split()
            else:
                made += self.made.get(e.target, [e])
        spec = replace(self.before, equations=tuple(made))
        return pruned(through_views(spec, {**self.aliases, **self.shown}))

    def _names(self, e: Equation) -> dict[str, int] | None:
        """By index of an equation that it reads phases by: the role. None if it reads them
        otherwise."""
        names: dict[str, int] = {}
        for read in e.reads():
            if read.tensor not in self.roles:
                continue
            at = read.at
            if read.tensor == self.convolution.target:
                if read != self.between.read:
                    return None
                at = self.between.at
            elif read.pad is not None:
                return None
            for position, role in zip(at, self.roles[read.tensor], strict=True):
                if not isinstance(position, Index) or names.setdefault(position.name, role) != role:
                    return None
        return names if len(set(names.values())) == len(names) else None

    def _alike(self, e: Equation, names: Mapping[str, int]) -> bool:
        """Whether an equation depends on the pixel only through the tensors with phases that it
        reads."""

        def plain(expr: Expr) -> bool:
            if isinstance(expr, Read) and expr.tensor in self.roles:
                return True
            if isinstance(expr, Index):
                return names.get(expr.name, 0) < 0
            return isinstance(expr, Range) or all(map(plain, expr.children()))

        if isinstance(e.value, Reduce):
            return not any(r.jagged or r.partial for r in e.value.ranges) and plain(e.value.body)
        return is_pointwise(e.value) and plain(e.value)

    def _move(self, e: Equation, names: Mapping[str, int]) -> None:
        """Computes an equation with split phases, and interleaves its result."""
        left = tuple(names[i] for i in e.indices)
        apart = any(r >= 0 for r in left)
        target = fresh(f"{e.target}_apart", self.taken) if apart else e.target
        # An index has one range in all equations, and these have other ranges.
        own = {i: fresh(f"{target}_{n}", self.taken) for n, i in enumerate(names)}
        phase = fresh(f"{target}_phase", self.taken)

        def moved(expr: Expr) -> Expr:
            if isinstance(expr, Read) and expr.tensor in self.roles:
                whole = expr.tensor == self.convolution.target
                at = self.between.at if whole else expr.at
                return Read(
                    self._named(expr.tensor), _with(self.roles[expr.tensor], at, Index(phase))
                )
            made = rebuilt(expr, moved)
            if not isinstance(made, Reduce):
                return made
            places = any(names[i] >= 0 for i in made.over)
            over = (phase, *made.over) if places else made.over
            return replace(made, over=over, ranges=tuple(self._range(i, names) for i in over))

        value = reindexed(moved(e.value), lambda i: own.get(i, i))
        at = tuple(reindexed(p, lambda i: own.get(i, i)) for p in e.at)
        if not apart:
            self.made[e.target] = [replace(e, at=at, value=value)]
            return
        sizes = tuple(
            Number(self.extents[r] if r >= 0 else n)
            for r, n in zip(left, self.shapes[e.target], strict=True)
        )
        first = Equation(
            target,
            _with(left, at, Index(phase)),
            value,
            sizes=_with(left, sizes, Number(self.count)),
        )
        self.roles[e.target] = left
        self.made[e.target] = [first, self._together(e, left, target)]

    def _together(self, e: Equation, roles: tuple[int, ...], apart: str) -> Equation:
        """The equation that interleaves the phases of a tensor."""
        index = {
            self.between.names[r]: Index(i) for i, r in zip(e.indices, roles, strict=True) if r >= 0
        }
        phase, places = self.between.places(index)
        at = tuple(places[r] if r >= 0 else p for p, r in zip(e.at, roles, strict=True))
        sizes = tuple(map(Number, self.shapes[e.target]))
        return replace(e, value=Read(apart, _with(roles, at, phase)), sizes=sizes)

    def _named(self, tensor: str) -> str:
        """The name of a tensor's version with split phases."""
        return tensor if tensor == self.convolution.target else self.made[tensor][0].target

    def _range(self, index: str, names: Mapping[str, int]) -> Range:
        """The range of a reduced index; an index without a role is the phase."""
        role = names.get(index)
        size = (
            self.count
            if role is None
            else self.between.channels
            if role < 0
            else self.extents[role]
        )
        return Range(index, Number(0), Number(size))

    def _each_once(self, e: Equation, names: Mapping[str, int]) -> bool:
        """Whether each pixel of each phase is read exactly once."""
        ranges = facts(self.before).ranges
        found = {r: number(ranges[i].high, {}) for i, r in names.items() if r >= 0}
        return self._periodic([found[r] for r in range(len(self.extents))])

    def _periodic(self, sizes: list[int]) -> bool:
        """Whether extents are whole multiples of the phases."""
        if any(n % u for n, u in zip(sizes, self.extents, strict=True)):
            return False
        return self._strided(sizes, [n // u for n, u in zip(sizes, self.extents, strict=True)])

    def _strided(self, sizes: list[int], strides: list[int]) -> bool:
        """Whether the phases repeat along each dimension with its stride, each equally often."""
        if not _separate(self.between.phase):
            return False

        def at(places: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
            names = {n: Number(p) for n, p in zip(self.between.names, places, strict=True)}
            phase, inside = self.between.places(names)
            return number(phase, {}), tuple(number(p, {}) for p in inside)

        first = at(tuple(0 for _ in sizes))[0]
        for d, (size, stride) in enumerate(zip(sizes, strides, strict=True)):
            along = [at(tuple(p if n == d else 0 for n in range(len(sizes)))) for p in range(size)]
            for p, (phase, places) in enumerate(along):
                if places[d] != p // stride or phase != along[p % stride][0]:
                    return False
        every = {at(p)[0] for p in product(*map(range, strides))}
        return first == 0 and every == set(range(self.count))

    def _split(self) -> list[Equation]:
        """The convolution with separate phase and channel indices, and the view of the filter that
        it reads."""
        e, channel = self.convolution, self.between.channel
        index, phase = e.indices[channel], fresh("phase", self.taken)
        own = self.filter.at.index(Index(index))
        shape = self.shapes[self.filter.tensor]
        name = fresh(f"{self.filter.tensor}_apart", self.taken)
        split = (*shape[:own], self.count, self.between.channels, *shape[own + 1 :])
        at = tuple(Index(fresh(f"{name}_{d}", self.taken)) for d in range(len(split)))
        self.shown[name] = self.filter.tensor

        def apart(expr: Expr) -> Expr:
            if expr == self.filter:
                places = self.filter.at
                return Read(name, (*places[:own], Index(phase), *places[own:]))
            match expr:  # the bound of a tap range by channel
                case Apply("floordiv", (Index(i), Number(by))) if i == index:
                    each = by // self.between.channels
                    return (
                        Apply("floordiv", (Index(phase), Number(each)))
                        if each > 1
                        else Index(phase)
                    )
            return rebuilt(expr, apart)

        places = (*e.at[:channel], Index(phase), *e.at[channel:])
        sizes = self.shapes[e.target]
        sizes = (*sizes[:channel], self.count, self.between.channels, *sizes[channel + 1 :])
        made = replace(e, at=places, value=apart(e.value), sizes=tuple(map(Number, sizes)))
        return [view(name, at, split, self.filter.tensor, shape), made]


def _with(roles: tuple[int, ...], at: tuple[_T, ...], phase: _T) -> tuple[_T, ...]:
    """Inserts the phase before the channel and pixel positions."""
    first = next(n for n, r in enumerate(roles) if r >= CHANNEL)
    return (*at[:first], phase, *at[first:])


def _separate(expr: Expr) -> bool:
    """Whether an expression is a sum of multiples of functions of one index each."""
    if len(indices(expr)) <= 1:
        return True
    match expr:
        case Apply("add", (a, b)):
            return _separate(a) and _separate(b)
        case Apply("mul", (a, Number())) | Apply("mul", (Number(), a)):
            return _separate(a)
    return False
