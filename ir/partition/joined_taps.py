"""Merges a 1x1 convolution and a wider one whose results are concatenated into one convolution.

before: a[n, o, y] = sum(x[n, k, y] * u[o, k], k), p[n, o, y] = relu(a[n, o, y] + c[o])
        b[n, o, y] = sum(pad(x[n, k, y + r - 1], 0.0) * v[o, k, r], k, r), q[n, o, y] = relu(b[n, o, y] + d[o])
        z[n, o, y] = where(o < 64, pad(p[n, o, y], 0.0), pad(q[n, o - 64, y], 0.0))
after:  w[o, k, r] = where(o < 64, where(r == 1, pad(u[o, k], 0.0), 0.0), pad(v[o - 64, k, r], 0.0)), e[o] likewise
        b[n, o, y] = sum(pad(x[n, k, y + r - 1], 0.0) * w[o, k, r], k, r), z[n, o, y] = relu(b[n, o, y] + e[o])

Both convolutions read the same input. With few input channels (the expand layers of SqueezeNet) the
multiplications by zero take less time than storing both results and concatenating them. Weights and
vectors are fixed, so the merged ones are computed before the calls.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from ir.affine import affine
from ir.contraction import contraction, factors, product
from ir.partition.views import fresh, is_plain, is_pointwise
from ir.sizes import value as number
from ir.spec import Apply, Cast, Equation, Expr, Index, Number, Read, Reduce, Spec
from ir.verify import facts
from ir.visit import renamed

# Channels of the input. On an H200 16 operations for each channel and each result at 300 TFLOP/s of
# tf32 take as long as 16 bytes of the results at 4.3 TB/s.
MOST = 64


def with_joined_taps(spec: Spec, fixed: Collection[str]) -> Spec:
    """Merges concatenated convolutions of a literal spec, one of which is 1x1.

    fixed: inputs that do not change between calls.
    """
    for e in spec.equations:
        spec = _Joining(spec, e, frozenset(fixed)).made() or spec
    return spec


class _NotAlikeError(Exception):
    """The two operands of a concatenation are not computed alike."""


@dataclass(slots=True)
class _Joining:
    """Merges the two operands that one equation concatenates."""

    spec: Spec
    last: Equation
    fixed: frozenset[str]
    channel: int = -1  # the concatenated dimension
    first: int = 0  # extent of the first operand along it
    equations: list[Equation] = field(default_factory=list)  # new ones
    gone: set[str] = field(default_factory=set)
    taken: set[str] = field(default_factory=set)

    def made(self) -> Spec | None:
        """The spec with one convolution; None if the operands cannot be merged."""
        parts = self._parts()
        if parts is None:
            return None
        known = facts(self.spec)
        self.taken = {*known.tensors, *known.ranges}
        try:
            name = self._joined(*parts)
        except _NotAlikeError:
            return None
        shown = replace(self.last, value=Read(name, self.last.at))
        left = [e for e in self.spec.equations if e.target not in self.gone]
        at = left.index(self.last)
        return replace(self.spec, equations=(*left[:at], *self.equations, shown, *left[at + 1 :]))

    def _parts(self) -> tuple[str, str] | None:
        """The two tensors that the equation concatenates."""
        e, value = self.last, self.last.value
        if not is_plain(e) or e.accumulate or not isinstance(value, Apply):
            return None
        if value.function != "where" or not all(isinstance(a, Read) for a in value.args[1:]):
            return None
        condition, one, other = value.args
        if not isinstance(condition, Apply) or condition.function != "lt":
            return None
        index, first = condition.args
        if index not in e.at or not isinstance(first, Number):
            return None
        assert isinstance(one, Read) and isinstance(other, Read) and isinstance(index, Index)
        self.channel, self.first = e.at.index(index), int(first.value)
        shifted = affine(other.at[self.channel]) if len(other.at) == len(e.at) else None
        if one.at != e.at or shifted is None or shifted.offset != Number(-self.first):
            return None
        rest = [n for n in range(len(e.at)) if n != self.channel]
        if shifted.terms != ((index.name, 1),) or any(other.at[n] != e.at[n] for n in rest):
            return None
        return one.tensor, other.tensor

    def _equation(self, tensor: str) -> Equation:
        """The equation of a tensor that has exactly one reader."""
        found = next((e for e in self.spec.equations if e.target == tensor), None)
        readers = [e for e in self.spec.equations if tensor in e.sources()]
        output = any(t.name == tensor for t in self.spec.outputs)
        if found is None or output or len(readers) != 1 or not is_plain(found) or found.accumulate:
            raise _NotAlikeError
        self.gone.add(tensor)
        return found

    def _joined(self, one: str, other: str) -> str:
        """The tensor that holds two tensors concatenated."""
        a, b = self._equation(one), self._equation(other)
        if contraction(a) and contraction(b):
            return self._convolution(a, b)
        if not (is_pointwise(a.value) and is_pointwise(b.value)):
            raise _NotAlikeError
        names = dict(zip(b.indices, a.at, strict=False))
        body = self._alike(a.value, renamed(b.value, names), a)
        return self._add(replace(a, value=body), a, b)

    def _alike(self, x: Expr, y: Expr, a: Equation) -> Expr:
        """Merges the expressions of both operands into one."""
        if isinstance(x, Read) and isinstance(y, Read):
            if x.pad is not None or y.pad is not None or x.at != y.at:
                raise _NotAlikeError
            if x.at == a.at:
                return Read(self._joined(x.tensor, y.tensor), a.at)
            if x.at == (a.at[self.channel],) and {x.tensor, y.tensor} <= self.fixed:
                index = Index(fresh(f"{x.tensor}_at", self.taken))
                value = self._where(index, Read(x.tensor, (index,), 0.0), y.tensor, (index,))
                return Read(self._put(x.tensor, (index,), value, (self._channels(x, y),)), x.at)
            if x == y and a.at[self.channel] not in x.at:
                return x
            raise _NotAlikeError
        if isinstance(x, Apply) and isinstance(y, Apply) and x.function == y.function:
            return Apply(
                x.function, tuple(self._alike(p, q, a) for p, q in zip(x.args, y.args, strict=True))
            )
        if isinstance(x, Cast) and isinstance(y, Cast) and x.dtype == y.dtype:
            return replace(x, value=self._alike(x.value, y.value, a))
        if x == y and isinstance(x, Number):
            return x
        raise _NotAlikeError

    def _channels(self, x: Read, y: Read) -> int:
        tensors = facts(self.spec).tensors
        return sum(number(tensors[r.tensor].shape[0], {}) for r in (x, y))

    def _where(self, index: Index, one: Expr, other: str, at: tuple[Expr, ...]) -> Expr:
        """Selects `one` before the end of the first operand, and reads `other` after it."""
        moved = tuple(p - self.first if p == index else p for p in at)
        before = Apply("lt", (index, Number(self.first)))
        return Apply("where", (before, one, Read(other, moved, 0.0)))

    def _put(self, stem: str, at: tuple[Index, ...], value: Expr, sizes: tuple[int, ...]) -> str:
        name = fresh(f"{stem}_joined", self.taken)
        self.equations.append(Equation(name, at, value, sizes=tuple(map(Number, sizes))))
        return name

    def _add(self, e: Equation, a: Equation, b: Equation) -> str:
        """Adds the merged equation of `a` and `b`; returns its target."""
        known = facts(self.spec)
        sizes = [number(known.ranges[i].high, {}) for i in a.indices]
        theirs = [number(known.ranges[i].high, {}) for i in b.indices]
        rest = [n for n in range(len(sizes)) if n != self.channel]
        if len(sizes) != len(theirs) or any(sizes[n] != theirs[n] for n in rest):
            raise _NotAlikeError
        sizes[self.channel] += theirs[self.channel]
        self.equations.append(replace(e, sizes=tuple(map(Number, sizes))))
        return e.target  # a name that is free now, and by which rounded operands are looked up

    def _convolution(self, a: Equation, b: Equation) -> str:
        """Merges two convolutions, the first of which has a single tap, into one with the taps of
        the second."""
        (x, u), (z, v) = self._operands(a), self._operands(b)
        tap = self._tap(a, x, b, z)
        assert isinstance(b.value, Reduce)
        channel, known = Index(b.indices[self.channel]), facts(self.spec)
        places = [p for p in v.at if isinstance(p, Index)]
        if v.at.count(channel) != 1 or len(places) != len(v.at):
            raise _NotAlikeError
        names = {p.name: i for p, i in tap.items() if isinstance(i, Index)} | {
            a.indices[self.channel]: channel
        }
        center: Expr = Read(u.tensor, tuple(renamed(p, names) for p in u.at), 0.0)
        for index, place in tap.items():
            if isinstance(place, Number):
                center = Apply("where", (Apply("eq", (index, place)), center, Number(0.0)))
        fresh_at = {p.name: Index(fresh(f"{p.name}_tap", self.taken)) for p in places}
        at = tuple(fresh_at[p.name] for p in places)
        index = fresh_at[channel.name]
        value = self._where(index, renamed(center, fresh_at), v.tensor, at)
        sizes = [number(known.ranges[p.name].high, {}) for p in places]
        sizes[v.at.index(channel)] += self.first
        w = Read(self._put(v.tensor, at, value, tuple(sizes)), v.at)
        body = product(tuple(w if f is v else f for f in factors(b.value.body)))
        return self._add(replace(b, value=replace(b.value, body=body)), b, a)

    def _operands(self, e: Equation) -> tuple[Read, Read]:
        """The input of a convolution and its fixed filter."""
        parts = factors(e.value.body) if isinstance(e.value, Reduce) else ()
        reads = [p for p in parts if isinstance(p, Read)]
        weights = [r for r in reads if r.tensor in self.fixed and r.pad is None]
        if len(parts) != 2 or len(reads) != 2 or len(weights) != 1:
            raise _NotAlikeError
        (w,) = weights
        (x,) = (r for r in reads if r is not w)
        if x.pad not in (None, 0):
            raise _NotAlikeError
        return x, w

    def _tap(self, a: Equation, x: Read, b: Equation, z: Read) -> dict[Index, Expr]:
        """Where the single tap of one convolution is in the windows of the other.

        By index that only the other sums (a filter tap): its value there. By channel index of the
        one: the channel index of the other.
        """
        if x.tensor != z.tensor or x.pad is not None:
            raise _NotAlikeError
        same = dict(zip(a.indices, b.indices, strict=True))
        found: dict[Index, Expr] = {}
        known = facts(self.spec)
        summed = 1
        for p, q in zip(x.at, z.at, strict=True):
            terms = affine(q)
            if not isinstance(p, Index) or terms is None or not isinstance(terms.offset, Number):
                raise _NotAlikeError
            if p.name in a.reduced:
                if not isinstance(q, Index) or q.name not in b.reduced:
                    raise _NotAlikeError
                found[p] = q
                summed *= number(known.ranges[p.name].high, {})
                continue
            taps = [(i, f) for i, f in terms.terms if i in b.reduced]
            if [(i, f) for i, f in terms.terms if i not in b.reduced] != [(same[p.name], 1)]:
                raise _NotAlikeError
            if len(taps) > 1:
                raise _NotAlikeError
            start = -int(terms.offset.value)
            for i, f in taps:
                if f <= 0 or start % f or not 0 <= start // f < number(known.ranges[i].high, {}):
                    raise _NotAlikeError
                found[Index(i)] = Number(start // f)
            if not taps and start:
                raise _NotAlikeError
        windows = [i for i, n in found.items() if isinstance(n, Number)]
        ours = {p.name for p in found if p.name in a.reduced}
        theirs = {i.name for i in windows} | {
            q.name for q in found.values() if isinstance(q, Index)
        }
        if summed > MOST or ours != set(a.reduced) or theirs != set(b.reduced):
            raise _NotAlikeError
        if not windows:
            raise _NotAlikeError
        return found
