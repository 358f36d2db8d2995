"""Random inputs that are valid for a spec: the use of an input decides its values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, floor, inf, isfinite, prod

import numpy as np

from ir.intervals import Interval, Intervals, limits
from ir.reference.rounding import HELD_AS, round_to
from ir.sizes import bind, free_sizes, shape, value
from ir.spec import (
    FLOATS,
    SCALE,
    Apply,
    Bucketize,
    Cast,
    Equation,
    Expr,
    Index,
    Read,
    Reduce,
    Spec,
    Tensor,
)
from ir.verify import facts

DRAWN = 8  # bytes of an element as it is drawn, before it is rounded to its dtype
SPREAD = 2  # standard deviation of the exponents of scales
WHOLE = 8  # integers without a known use are drawn from -WHOLE to WHOLE
# Functions that bound or test a value: a position does not constrain their arguments.
_CLAMPS = ("minimum", "maximum", "mod", "and", "lt", "le", "gt", "ge", "eq", "ne", "uniform")
_POSITIVE = ("log", "log2", "log10", "log1p", "sqrt", "rsqrt")
LEAST = 0.1  # keeps divisors and arguments of logarithms away from 0


@dataclass(slots=True)
class Use:
    """How one spec uses its inputs."""

    # By integer tensor that is read as a position or has a declared range: first entry and end.
    within: dict[str, tuple[int, int]] = field(default_factory=dict)
    # By float input with a declared range: the least and the greatest entry.
    limits: dict[str, tuple[float, float]] = field(default_factory=dict)
    # By offsets tensor of jagged ranges: the size that its entries run to.
    bounds: dict[str, int] = field(default_factory=dict)
    # By tensor of starts: the tensor of ends, if these are two tensors.
    ends: dict[str, str] = field(default_factory=dict)
    # By sorted tensor: the tensors that are searched in it.
    borders: dict[str, list[str]] = field(default_factory=dict)
    # Scales, and float inputs that are divisors or arguments of logarithms and roots.
    positive: set[str] = field(default_factory=set)


def random_inputs(
    spec: Spec, sizes: Mapping[str, int], rng: np.random.Generator, *, scale: float = 1.0
) -> dict[str, np.ndarray]:
    """Inputs by name, in their dtypes (see `rounding`); floats are normal times `scale`."""
    bound = bind(spec, sizes)
    use = uses(spec, bound)
    made = drawn_alone(spec.inputs, bound, use, rng, scale)
    dtypes = {t.name: t.dtype for t in spec.inputs}
    return {name: round_to(array, dtypes[name]) for name, array in made.items()}


def drawn_alone(
    tensors: Sequence[Tensor],
    sizes: Mapping[str, int],
    use: Use,
    rng: np.random.Generator,
    scale: float = 1.0,
) -> dict[str, np.ndarray]:
    """Some inputs, before they are rounded to their dtypes.

    A sorted tensor must come with all tensors that are drawn with it.

    sizes: derived ones included.
    use: as in `uses`.
    """
    made = {t.name: _plain(t, sizes, use, rng, scale) for t in tensors}
    for name, last in use.bounds.items():
        _offsets(made, name, use.ends.get(name), last, rng)
    for borders, searched in use.borders.items():
        _borders(made, borders, searched, use, rng)
    return made


def drawn_bytes(spec: Spec, sizes: Mapping[str, int]) -> tuple[int, int]:
    """Bytes of the inputs that `random_inputs` returns, and bytes of the temporaries that it
    needs."""
    bound = bind(spec, sizes)
    counts = [(prod(shape(t, bound)), np.dtype(HELD_AS[t.dtype]).itemsize) for t in spec.inputs]
    return sum(n * held for n, held in counts), sum(n * DRAWN for n, _ in counts)


def uses(spec: Spec, sizes: Mapping[str, int]) -> Use:
    """How a spec uses its inputs at the given sizes (derived ones included)."""
    use = Use(positive={t.name for t in spec.inputs if t.dtype == SCALE})
    for t in spec.inputs:
        if t.range and t.dtype in FLOATS:
            use.limits[t.name] = limits(t)
        elif t.range:
            use.within[t.name] = (value(t.range[0], sizes), value(t.range[1], sizes))
    finder = _Finder(spec, sizes, use)
    for e in spec.equations:
        finder.equation(e)
    return use


class _Finder:
    def __init__(self, spec: Spec, sizes: Mapping[str, int], use: Use):
        self.use = use
        self.sizes = sizes
        self.inputs = {t.name: t for t in spec.inputs}
        self.equations = {e.target: e for e in spec.equations}
        self.tensors = facts(spec).tensors
        self.intervals = Intervals(spec, {n: sizes[n] for n in free_sizes(spec)})

    def equation(self, e: Equation) -> None:
        self._positions(e.target, e.at)
        for r in e.value.ranges if isinstance(e.value, Reduce) else ():
            if isinstance(r.low, Read) and isinstance(r.high, Read):
                self._jagged(e.reduce, r.index, r.low.tensor, r.high.tensor)
        for node in (n for x in (*e.at, e.value) for n in x.walk()):
            match node:
                case Read(tensor, at):
                    self._positions(tensor, at)
                case Bucketize(searched, borders) if borders in self.inputs:
                    found = self.use.borders.setdefault(borders, [])
                    found += [n for n, *_ in self._reach(searched) if n not in found]
                case Apply("div", (_, b)):
                    self.use.positive |= self._floats(b)
                case Apply(function, (a,)) if function in _POSITIVE:
                    self.use.positive |= self._floats(a)

    def _positions(self, tensor: str, at: tuple[Expr, ...]) -> None:
        for expr, size in zip(at, self.tensors[tensor].shape, strict=True):
            last = value(size, self.sizes) - 1
            for name, low, high in () if isinstance(expr, Index) else self._reach(expr, 0, last):
                self._narrow(name, low, high)

    def _narrow(self, name: str, low: float, high: float) -> None:
        """Restricts an input's entries to [low, high], unless no value would be left."""
        first, end = self.use.within.get(name, (-inf, inf))
        least, most = max(first, low), min(end, high + 1)
        if least < most and isfinite(least) and isfinite(most):
            self.use.within[name] = (int(least), int(most))

    def _jagged(self, reduction: Reduce, index: str, low: str, high: str) -> None:
        """Bounds the offsets by the smallest dimension that the jagged index addresses."""
        walked = [
            value(size, self.sizes)
            for n in reduction.body.walk()
            if isinstance(n, Read)
            for expr, size in zip(n.at, self.tensors[n.tensor].shape, strict=True)
            if isinstance(expr, Index) and expr.name == index
        ]
        if low not in self.inputs:
            return
        self.use.bounds[low] = min([*walked, self.use.bounds.get(low, 2**31 - 1)])
        if high != low and high in self.inputs:
            self.use.ends[low] = high

    def _reach(
        self, expr: Expr, low: float = -inf, high: float = inf, seen: frozenset[str] = frozenset()
    ) -> Iterator[tuple[str, float, float]]:
        """The integer inputs that determine an expression, with the interval of their entries.

        Entries in that interval keep the expression in [low, high].

        seen: tensors on the way, which ends cycles.
        """
        match expr:
            case Bucketize():
                return
            case Apply(function) if function in _CLAMPS:
                return
            case Read(tensor) if tensor in self.inputs:
                if self.inputs[tensor].dtype not in FLOATS:
                    yield tensor, low, high
            case Read(tensor):
                if tensor not in seen:
                    inner = self.equations[tensor].value
                    yield from self._reach(inner, low, high, seen | {tensor})
            case Apply("where", (condition, first, second)):
                # A condition only selects; its own value is not bounded.
                yield from self._reach(condition, seen=seen)
                for branch in (second, first):
                    yield from self._reach(branch, low, high, seen)
            case Apply(function, args) if function in _UNDONE:
                for n, arg in enumerate(args):
                    others = [self.intervals.of(a) for a in args]
                    yield from self._reach(arg, *_UNDONE[function](n, others, low, high), seen)
            case _:
                for child in expr.children():
                    yield from self._reach(child, low, high, seen)

    def _floats(self, expr: Expr) -> set[str]:
        """The float inputs whose sign decides an expression's sign."""
        match expr:
            case Read(tensor) if tensor in self.inputs:
                return {tensor} if self.inputs[tensor].dtype in FLOATS else set()
            case Cast(_, inner):
                return self._floats(inner)
            case Apply("add" | "mul" | "div", args):
                return set().union(*map(self._floats, args))
        return set()


def _added(n: int, args: list[Interval], low: float, high: float) -> Interval:
    least, most = args[1 - n]
    return (low - least, high - most) if isfinite(least) and isfinite(most) else (low, high)


def _subtracted(n: int, args: list[Interval], low: float, high: float) -> Interval:
    least, most = args[1 - n]
    if not isfinite(least) or not isfinite(most):
        return (low, high)
    return (most - high, least - low) if n else (low + most, high + least)


def _multiplied(n: int, args: list[Interval], low: float, high: float) -> Interval:
    least, most = args[1 - n]
    if least != most or not isfinite(least) or not least or not isfinite(low) or not isfinite(high):
        return (low, high)
    ends = sorted((low / least, high / least))
    return (ceil(ends[0]), floor(ends[1]))


def _divided(n: int, args: list[Interval], low: float, high: float) -> Interval:
    least, most = args[1]
    known = not n and least == most and 0 < least < inf
    return (low * least, high * least + least - 1) if known else (low, high)


# By function: the interval of argument number n that keeps the result in [low, high], given the
# intervals of all arguments.
_UNDONE = {"add": _added, "sub": _subtracted, "mul": _multiplied, "floordiv": _divided}


def _plain(
    t: Tensor, sizes: Mapping[str, int], use: Use, rng: np.random.Generator, scale: float
) -> np.ndarray:
    dims = shape(t, sizes)
    if t.name in use.within:
        return rng.integers(*use.within[t.name], dims)
    if t.dtype == "b8":
        return rng.random(dims) < 0.5
    if t.dtype not in FLOATS:
        return rng.integers(-WHOLE, WHOLE + 1, dims)
    drawn = rng.standard_normal(dims) * scale
    if t.dtype == SCALE and not t.range:
        return np.exp2(np.rint(SPREAD * drawn))
    drawn = np.abs(drawn) + LEAST if t.name in use.positive else drawn
    low, high = use.limits.get(t.name, (-inf, inf))
    if low < 0 < high:
        return np.clip(drawn, low, high)
    with np.errstate(over="ignore"):
        return low + (high - low) / (1 + np.exp(-drawn))  # in every part of the range


def _offsets(
    made: dict[str, np.ndarray], low: str, high: str | None, last: int, rng: np.random.Generator
) -> None:
    """Sorted offsets from 0 to `last`, with one empty segment if there is space for it."""
    count = made[low].size + (high is not None)
    offsets = np.sort(rng.integers(0, last + 1, count))
    offsets[0] = 0
    if count > 1:
        offsets[-1] = last
    if count > 3:
        offsets[count // 2] = offsets[count // 2 - 1]
    if high is None:
        made[low] = offsets
    else:
        made[low], made[high] = offsets[:-1], offsets[1:]


def _borders(
    made: dict[str, np.ndarray],
    borders: str,
    searched: list[str],
    use: Use,
    rng: np.random.Generator,
) -> None:
    """Sorted borders. Integer ones are distinct, and half of the searched values equal one."""
    array = made[borders]
    if array.dtype.kind == "f":
        made[borders] = np.sort(array)
        return
    span = max(4 * array.size, 2)
    made[borders] = np.sort(rng.choice(span, array.size, replace=False))
    for name in searched:
        if name not in use.within:
            dims = made[name].shape
            hits = rng.choice(made[borders], dims)
            made[name] = np.where(rng.random(dims) < 0.5, hits, rng.integers(0, span, dims))
