"""Splits an index that interleaves phases into an index of the period and one of the phase.

before: y[b, o, j] = tanh(c[b, j % 2 * O + o, j // 2]), z[b, o, j] = y[b, o, j] * s[o]
after:  y_phases[b, o, u, r] = tanh(c[b, r * O + o, u]), z_phases[b, o, u, r] = y_phases[b, o, u, r] * s[o]
        y[b, o, j] = y_phases[b, o, j // 2, j % 2], z[b, o, j] = z_phases[b, o, j // 2, j % 2]

`y` and `z` are views of `y_phases` and `z_phases`. Transposed convolutions interleave their results
so: these are the channels of an ordinary convolution (`frontends/aten/convolution.py`). A thread
block then loads contiguous elements of each phase, and interleaves them in its stores.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import prod

from ir.partition.groups import windowed
from ir.partition.reshaped import view
from ir.partition.views import fresh, is_plain, is_pointwise
from ir.recurrence import recurrences
from ir.sizes import shape
from ir.sizes import value as number
from ir.spec import Apply, Equation, Expr, Index, Number, Read, Reduce, Spec
from ir.verify import facts
from ir.visit import pruned, rebuilt

MOST_PHASES = 8  # of a dimension
LEAST = 1 << 20  # elements of a tensor above which a pass over it takes longer than a launch


def with_periods_apart(spec: Spec, aliases: Mapping[str, str]) -> tuple[Spec, dict[str, str]]:
    """Splits interleaved indices of a literal spec into period and phase; returns the spec and its
    aliases.

    aliases: by view, the tensor whose memory it shows.
    """
    found = dict(aliases)
    for e in spec.equations:
        if e.target in found:
            continue
        made = _Periods(spec, found)
        if made.begun(e):
            made.go_on(e)
            if not made.waits():
                spec, found = made.spec(), {**found, **made.shown}
    there = {e.target for e in spec.equations}
    return spec, {name: source for name, source in found.items() if name in there}


@dataclass(slots=True)
class _Periods:
    """An equation that reads interleaved phases, and the pointwise equations that depend on it."""

    before: Spec
    aliases: Mapping[str, str]
    shapes: dict[str, tuple[int, ...]] = field(init=False)
    taken: set[str] = field(init=False)
    fixed: set[str] = field(init=False)
    # by tensor: the number of phases of each dimension
    strides: dict[str, tuple[int, ...]] = field(default_factory=dict)
    # by tensor: the name of its version with split phases
    named: dict[str, str] = field(default_factory=dict)
    # by target: the equations that replace its equation
    made: dict[str, list[Equation]] = field(default_factory=dict)
    shown: dict[str, str] = field(default_factory=dict)  # by new view: the tensor that it shows
    # views of the tensors that the current equation reads
    views: list[Equation] = field(default_factory=list)

    def __post_init__(self) -> None:
        spec = self.before
        self.shapes = {name: shape(t, {}) for name, t in facts(spec).tensors.items()}
        self.taken = {*self.shapes, *(i for e in spec.equations for i in (*e.indices, *e.reduced))}
        self.fixed = {*self.aliases, *(t for r in recurrences(spec) for t in r.targets)}

    def begun(self, e: Equation) -> bool:
        """Whether an equation reads a large tensor by phases; if so, takes it."""
        if not self._able(e) or prod(self.shapes[e.target]) < LEAST or not is_pointwise(e.value):
            return False
        if not any(_phase_of_channels(p) for r in e.reads() for p in r.at):
            return False
        phases: dict[str, set[int]] = {}
        for index, stride in (t for r in e.reads() for p in r.at for t in _phases_of(p)):
            phases.setdefault(index, set()).add(stride)
        sizes = dict(zip(e.indices, self.shapes[e.target], strict=True))
        whole = {i: s for i, (s, *more) in phases.items() if not more and sizes[i] % s == 0}
        whole = {i: s for i, s in whole.items() if s <= MOST_PHASES}
        if not whole or whole.keys() != phases.keys():
            return False
        self._take(e, whole)
        return True

    def go_on(self, first: Equation) -> None:
        """Takes the pointwise equations that depend on the first one."""
        for e in self.before.equations:
            reads = [r for r in e.reads() if r.tensor in self.strides]
            if e is first or not reads or not self._able(e):
                continue
            strides: dict[str, int] = {}
            plain = True
            for read in reads:
                for p, s in zip(read.at, self.strides[read.tensor], strict=True):
                    plain = plain and isinstance(p, Index) and read.pad is None
                    if isinstance(p, Index):
                        plain = plain and strides.setdefault(p.name, s) == s
            stays = all(i in e.indices for i, s in strides.items() if s > 1)
            if plain and stays:
                self._take(e, {i: s for i, s in strides.items() if s > 1})

    def waits(self) -> bool:
        """Whether a reduction would have to read from memory what it could compute as its prologue.

        A kernel that reduces over the channels of all phases took 1240 us for 1.1 GB on an H100. On
        an H200 two kernels of that problem took 998 us if the reduction interleaves the phases
        itself, and 1255 us with this rewrite.
        """
        return any(
            isinstance(e.value, Reduce) and not windowed(e)
            for e in self.before.equations
            if e.target not in self.made and self.made.keys() & set(e.sources())
        )

    def spec(self) -> Spec:
        """The spec with split phases."""
        made = (one for e in self.before.equations for one in self.made.get(e.target, [e]))
        return pruned(replace(self.before, equations=tuple(made)))

    def _seen(self, read: Read, extents: Mapping[str, int]) -> Read | None:
        """Rewrites a read whose channel dimension contains the phases to a view that separates the
        two.

        None for other reads.

        extents: the number of values of each index.
        """
        sizes = self.shapes[read.tensor]
        for d, position in enumerate(read.at):
            if (found := _phase_of_channels(position)) is None:
                continue
            phase, each, own = found
            if sizes[d] % each or extents.get(own) != each:
                continue
            split = (*sizes[:d], sizes[d] // each, each, *sizes[d + 1 :])
            name = fresh(f"{read.tensor}_phases", self.taken)
            at = tuple(Index(fresh(f"{name}_{n}", self.taken)) for n in range(len(split)))
            self.views.append(view(name, at, split, read.tensor, sizes))
            self.shown[name], self.shapes[name] = read.tensor, split
            return replace(
                read, tensor=name, at=(*read.at[:d], phase, Index(own), *read.at[d + 1 :])
            )
        return None

    def _able(self, e: Equation) -> bool:
        own = e.target not in self.fixed and not e.accumulate
        return own and is_plain(e) and is_pointwise(e.value)

    def _take(self, e: Equation, strides: Mapping[str, int]) -> None:
        """Computes an equation with split phases. strides: by index of it, the number of phases."""
        target = fresh(f"{e.target}_phases", self.taken)
        ranges = facts(self.before).ranges
        extents = {i: number(ranges[i].high, {}) for i in e.indices}
        own = {
            i: _Split(
                Index(fresh(f"{target}_{i}", self.taken)),
                Index(fresh(f"{target}_{i}_phase", self.taken)),
                extents[i] // s,
                s,
            )
            for i, s in strides.items()
        }
        value = self._apart(e.value, own, extents)
        views, self.views = self.views, []
        sizes: list[int] = []
        whole: list[Expr] = []
        for i, n in zip(e.indices, self.shapes[e.target], strict=True):
            s = Number(strides.get(i, 1))
            sizes += [own[i].places, own[i].phases] if i in own else [n]
            parts = (Apply("floordiv", (Index(i), s)), Apply("mod", (Index(i), s)))
            whole += parts if i in own else (Index(i),)
        at = tuple(_split(e.at, own))
        first = Equation(target, at, value, sizes=tuple(map(Number, sizes)))
        shown = tuple(map(Number, self.shapes[e.target]))
        again = replace(e, value=Read(target, tuple(whole)), sizes=shown)
        self.made[e.target] = [*views, first, again]
        self.strides[e.target] = tuple(strides.get(i, 1) for i in e.indices)
        self.named[e.target], self.shown[e.target] = target, target

    def _apart(self, expr: Expr, own: Mapping[str, _Split], extents: Mapping[str, int]) -> Expr:
        """Rewrites an expression in terms of periods and phases."""

        def apart(part: Expr) -> Expr:
            return self._apart(part, own, extents)

        match expr:
            case Read(tensor) if tensor in self.strides:
                at = tuple(p if isinstance(p, Index) else apart(p) for p in _split(expr.at, own))
                return replace(expr, tensor=self.named[tensor], at=at)
            case Read() if (seen := self._seen(expr, extents)) is not None:
                return replace(seen, at=tuple(map(apart, seen.at)))
            case Apply("mod" | "floordiv", (of, Number(n))) if shifted := _shifted(of):
                if shifted[0] in own and own[shifted[0]].phases == n:
                    return own[shifted[0]].part(expr.function, shifted[1])
            case Index(i) if i in own:
                return own[i].whole()
        return rebuilt(expr, apart)


@dataclass(frozen=True, slots=True)
class _Split:
    """The two indices that replace an interleaved index."""

    place: Index
    phase: Index
    places: int  # number of periods
    phases: int

    def whole(self) -> Expr:
        """The original index."""
        return Apply("add", (Apply("mul", (self.place, Number(self.phases))), self.phase))

    def part(self, function: str, shift: int) -> Expr:
        """The quotient or remainder of the index plus a shift, divided by the number of phases."""
        if not shift:
            return self.phase if function == "mod" else self.place
        of = Apply("add", (self.phase, Number(shift)))
        part = Apply(function, (of, Number(self.phases)))
        return part if function == "mod" else Apply("add", (self.place, part))


def _split(positions: tuple[Expr, ...], own: Mapping[str, _Split]) -> Iterator[Expr]:
    """Replaces each interleaved index among positions by its period and its phase."""
    for p in positions:
        if isinstance(p, Index) and p.name in own:
            yield from (own[p.name].place, own[p.name].phase)
        else:
            yield p


def _phase_of_channels(position: Expr) -> tuple[Expr, int, str] | None:
    """Matches a position `phase * channels + channel`: the phase, the number of channels, and their
    index.

    None for other positions.
    """
    match position:
        case Apply("add", (Apply("mul", (phase, Number(each))), Index(own))) if [
            *_phases_of(phase)
        ]:
            return phase, int(each), own
    return None


def _phases_of(position: Expr) -> Iterator[tuple[str, int]]:
    """The indices whose remainders occur in a position, each with the divisor."""
    for node in position.walk():
        match node:
            case Apply("mod", (of, Number(stride))) if stride > 1 and (found := _shifted(of)):
                yield found[0], int(stride)


def _shifted(expr: Expr) -> tuple[str, int] | None:
    """Matches a position `index + number`."""
    match expr:
        case Index(name):
            return name, 0
        case Apply("add", (Index(name), Number(shift))) if shift > 0:
            return name, int(shift)
    return None
