"""Limits the filter taps that a transposed convolution sums to those that each phase has.

With a stride of 2 and a kernel of 3, phase 0 has one tap and phase 1 has two, so the filter of
phase 0 has a zero:

before: w[q, n, k] = pad(v[k, q % O, 1 + q // O - n * 2], 0.0)
        c[b, q, i] = sum(x[b, k, i + n] * w[q, n, k], k, n)
after:  c[b, q, i] = sum(x[b, k, i + n] * w[q, n, k], k, n=range(0, q // O + 1))

In three dimensions 27 taps are left of 64. Only products with zeros are left out. For an infinite x
such a product would be NaN, in a phase that has no such tap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import gcd

from ir.contraction import indices
from ir.partition.channels_last import convolution_parts
from ir.partition.mixed_radix import simplified
from ir.partition.views import is_plain
from ir.sizes import shape
from ir.sizes import value as number
from ir.spec import Apply, Cast, Equation, Expr, Index, Number, Range, Read, Spec
from ir.verify import facts

TILE = 128  # least number of channels of a thread block's tile, all of one phase
MOST = 2048  # most channels that are examined

Run = tuple[int, int]  # the first tap and the one after the last
Span = tuple[int, int]  # the least and the greatest value


def with_taps_of_phases(spec: Spec) -> Spec:
    """Limits the sums of a literal spec's convolutions to the taps that are not zero in all of a
    phase."""
    zeros = _Zeros(spec)
    return _valued(spec, [_limited(spec, e, zeros) for e in spec.equations])


def with_whole_tiles(spec: Spec) -> Spec:
    """Drops partial tap ranges where the channels of a phase are too few to fill a tile."""
    return _valued(spec, [_coarse(e) for e in spec.equations])


def _valued(spec: Spec, values: Sequence[Expr]) -> Spec:
    """The spec with other right sides; the same spec if they are unchanged."""
    pairs = list(zip(spec.equations, values, strict=True))
    if all(e.value is value for e, value in pairs):
        return spec
    return replace(spec, equations=tuple(replace(e, value=value) for e, value in pairs))


def _limited(spec: Spec, e: Equation, zeros: _Zeros) -> Expr:
    parts = convolution_parts(e)
    if parts is None or not parts[2] or e.reduce.ranges and any(r.partial for r in e.reduce.ranges):
        return e.value
    x, w, taps = parts
    ranges = facts(spec).ranges
    own = [i for i in e.indices if Index(i) in w.at and i not in indices(x)]
    found: list[Range] = []
    for tap in (p.name for p in w.at if isinstance(p, Index) and p.name in taps):
        count = number(ranges[tap].high, {})
        for index in own:
            extent = number(ranges[index].high, {})
            if not 1 < extent <= MOST or not zeros.has_any(w.tensor):
                continue
            runs = [zeros.run(w, {index: q}, tap, count) for q in range(extent)]
            if bounds := _bounds(index, runs, count):
                found.append(Range(tap, *bounds))
                break
    return _with(e, found)


def _with(e: Equation, found: Sequence[Range]) -> Expr:
    """The sum with some ranges; limited indices come after the others."""
    if not found:
        return e.value
    limited = {r.index for r in found}
    whole = [r for r in e.reduce.ranges if r.index not in limited]
    over = [i for i in e.reduce.over if i not in limited]
    return replace(e.reduce, over=(*over, *(r.index for r in found)), ranges=(*whole, *found))


def _bounds(index: str, runs: Sequence[Run | None], count: int) -> tuple[Expr, Expr] | None:
    """The range of taps as an expression of the channel.

    None if every channel has all taps, or if no such expression exists.
    """
    kept = [r for r in runs if r is not None]
    if len(kept) < len(runs) or all(r == (0, count) for r in kept):
        return None
    block = len(kept)
    for q in range(1, len(kept)):
        if kept[q] != kept[q - 1]:
            block = gcd(block, q)
    each = kept[::block]
    phases = next(n for n in range(1, len(each) + 1) if each == each[:n] * (len(each) // n))
    if phases == 1:
        return None
    phase: Expr = Index(index)
    if block > 1:
        phase = Apply("floordiv", (phase, Number(block)))
    if phases < len(each):
        phase = Apply("mod", (phase, Number(phases)))
    low = _end(phase, [first for first, _ in each[:phases]], 0)
    high = _end(phase, [after for _, after in each[:phases]], count)
    return (low, high) if low and high else None


def _end(phase: Expr, ends: Sequence[int], always: int) -> Expr | None:
    """One end of the ranges by phase, as a number or as `phase + number`; None if it is neither."""
    if all(end == always for end in ends):
        return Number(always)
    first = ends[0]
    if first < 0 or list(ends) != list(range(first, first + len(ends))):
        return None
    return Apply("add", (phase, Number(first))) if first else phase


def _coarse(e: Equation) -> Expr:
    found = convolution_parts(e)
    if found is None or not any(r.partial for r in e.reduce.ranges):
        return e.value
    x, w, _ = found
    own = [i for i in e.indices if i in indices(w) and i not in indices(x)]
    if len(own) > 1:
        return e.value  # a phase is an index of its own
    parts = [r for r in e.reduce.ranges if r.partial]
    kept = [r for r in parts if min(_channels(r.low), _channels(r.high)) >= TILE]
    whole = replace(e.reduce, ranges=tuple(r for r in e.reduce.ranges if not r.partial))
    return _with(replace(e, value=whole), kept)


def _channels(expr: Expr) -> int:
    """The number of consecutive channels with the same bound."""
    found = [
        int(n.args[1].value)
        for n in expr.walk()
        if isinstance(n, Apply) and n.function == "floordiv" and isinstance(n.args[1], Number)
    ]
    return found[0] if found else 1 if indices(expr) else TILE


@dataclass(slots=True)
class _Zeros:
    """Finds where tensors are zero because they show only the padding of another tensor."""

    spec: Spec
    equations: Mapping[str, Equation] = field(init=False)
    shapes: Mapping[str, tuple[int, ...]] = field(init=False)
    extents: Mapping[str, int] = field(init=False)
    shown: dict[str, Read | None] = field(default_factory=dict)  # by tensor: the read that it shows

    def __post_init__(self) -> None:
        known, equations = facts(self.spec), self.spec.equations
        self.equations = {e.target: e for e in equations if not e.accumulate and is_plain(e)}
        self.shapes = {name: shape(t, {}) for name, t in known.tensors.items()}
        self.extents = {
            i: number(r.high, {}) for i, r in known.ranges.items() if not r.jagged and not r.partial
        }

    def has_any(self, tensor: str) -> bool:
        """Whether a tensor shows a zero-padded read, directly or through others."""
        read = self._of(tensor)
        return read is not None and (read.pad == 0 or self.has_any(read.tensor))

    def run(self, w: Read, at: Mapping[str, int], tap: str, count: int) -> Run | None:
        """The taps that can be nonzero at some filter indices; None if they are not contiguous."""
        own = {i: (n, n) for i, n in at.items()}
        left = [n for n in range(count) if not self._zero(w, {**own, tap: (n, n)})]
        run = (left[0], left[-1] + 1) if left else None
        return run if run and run[1] - run[0] == len(left) else None

    def _of(self, tensor: str) -> Read | None:
        """The read that a tensor shows, up to a cast; None for inputs and computed tensors."""
        if tensor not in self.shown:
            e = self.equations.get(tensor)
            value = e.value if e else None
            inner = value.value if isinstance(value, Cast) else value
            read = inner if isinstance(inner, Read) else None
            if read is not None:
                read = replace(read, at=tuple(simplified(p, self.extents) for p in read.at))
            self.shown[tensor] = read
        return self.shown[tensor]

    def _zero(self, read: Read, at: Mapping[str, Span]) -> bool:
        """Whether a read is zero at the given indices, whatever the other indices are."""
        places = [self._span(p, at) for p in read.at]
        sizes = self.shapes[read.tensor]
        if read.pad is not None and any(
            p is not None and (p[1] < 0 or p[0] >= n) for p, n in zip(places, sizes, strict=True)
        ):
            return read.pad == 0
        inner = self._of(read.tensor)
        if inner is None:
            return False
        own = zip(self.equations[read.tensor].indices, places, strict=True)
        return self._zero(inner, {i: p for i, p in own if p is not None})

    def _span(self, expr: Expr, at: Mapping[str, Span]) -> Span | None:
        """The least and the greatest value of a position; None if they are unknown."""
        match expr:
            case Number(int(value)):
                return value, value
            case Index(name):
                extent = self.extents.get(name)
                return at.get(name) or (None if extent is None else (0, extent - 1))
            case Apply(function, (first, second)):
                a, b = self._span(first, at), self._span(second, at)
                if a is None or b is None:
                    return None
                match function:
                    case "add":
                        return a[0] + b[0], a[1] + b[1]
                    case "sub":
                        return a[0] - b[1], a[1] - b[0]
                    case "mul":
                        ends = [x * y for x in a for y in b]
                        return min(ends), max(ends)
                    case "floordiv" if b[0] == b[1] > 0:
                        return a[0] // b[0], a[1] // b[0]
                    case "mod" if b[0] == b[1] > 0:
                        alike = a[0] // b[0] == a[1] // b[0]
                        return (a[0] % b[0], a[1] % b[0]) if alike else (0, b[0] - 1)
        return None
