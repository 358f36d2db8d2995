"""The oracle: evaluates a spec with numpy, in float64 or at its storage precision."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import product

import numpy as np

from ir.errors import KernelError
from ir.recurrence import Recurrence, ordered, stepped
from ir.reference.labelled import Labelled, counted, union
from ir.reference.product_sum import factors, product_sum
from ir.reference.rounding import BITS, round_bits, round_to, whole
from ir.reference.rows import WHOLE, Rows, Runs
from ir.reference.values import Span, Spans, Values
from ir.sizes import bind, shape, value
from ir.spec import EIGHT, FLOATS, Equation, Expr, Index, Range, Reduce, Scan, Spec
from ir.verify import facts

LARGEST_BLOCK = 2**22  # elements of one temporary array: 32 MB of float64
# Terms that one loop adds: the rounding error of more would hide terms that a kernel leaves out.
SERIAL = 2**14
NARROWEST = ("bf16", "f16", "f32", "f64")
_SEGMENT = "*"  # axis of a jagged index: all segments concatenated
_REDUCTIONS = {
    "sum": np.add,
    "prod": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "any": np.logical_or,
    "all": np.logical_and,
}
_ARGUMENTS = {"argmax": np.argmax, "argmin": np.argmin}


def evaluate(
    spec: Spec,
    inputs: Mapping[str, np.ndarray],
    sizes: Mapping[str, int],
    rows: Rows = WHOLE,
) -> dict[str, np.ndarray]:
    """The outputs by name: floats in float64 without intermediate rounding, integers in int64.

    Raises KernelError if an input is missing or has another shape than the sizes give, and if an
    unpadded read is out of bounds.

    rows: the rows to evaluate; outputs contain only these.
    """
    tensors = _Run(spec, inputs, sizes, np.float64, "f64", rows).tensors()
    return {t.name: rows.taken(t.name, tensors[t.name]) for t in spec.outputs}


def evaluate_storage(
    spec: Spec,
    inputs: Mapping[str, np.ndarray],
    sizes: Mapping[str, int],
    rows: Rows = WHOLE,
    noise: np.random.Generator | None = None,
) -> dict[str, np.ndarray]:
    """The outputs by name, each equation's result rounded to the storage precision.

    The storage precision is the narrowest float dtype of the spec's inputs and outputs. With f32,
    everything is computed in float32, and tensors of tf32 are rounded to it. With f16 and bf16,
    everything is computed in float64 and rounded after each equation: to the dtype itself if the
    tensor has it, else (an f32 sum of squares) to as many bits. Tensors of 8-bit floats are rounded
    to them. Only f64 tensors have a larger range than f32. The f32 operands of sums that the spec
    lists as `rounded` are rounded to tf32.

    noise: perturbs each input by up to one unit in the last place of f32 or of its own wider
        format, and each equation's result by up to one unit of the storage precision. SERIAL terms
        of f32 sums are added sequentially, as a loop adds them; numpy's pairwise sums have a
        smaller error than a kernel. Several such runs show how much roundings as good as those of
        plain arithmetic change a result (Monte Carlo arithmetic).
    """
    storage = storage_dtype(spec)
    real = np.float32 if storage == "f32" else np.float64
    tensors = _Run(spec, inputs, sizes, real, storage, rows, noise).tensors()
    found = {t.name: rows.taken(t.name, tensors[t.name]) for t in spec.outputs}
    return {t.name: round_to(found[t.name], t.dtype) for t in spec.outputs}


def storage_dtype(spec: Spec) -> str:
    """The narrowest float dtype among inputs and outputs; f32 if there is none.

    8-bit floats count as bf16: they are stored and multiplied, not computed with, and a matrix unit
    that takes them need not keep all f32 bits of a sum.
    """
    used = {"bf16" if t.dtype in EIGHT else t.dtype for t in (*spec.inputs, *spec.outputs)}
    return next((d for d in NARROWEST if d in used), "f32")


class _Run:
    """One evaluation of a spec."""

    def __init__(
        self,
        spec: Spec,
        inputs: Mapping[str, np.ndarray],
        sizes: Mapping[str, int],
        real: type[np.floating],
        storage: str,
        rows: Rows,
        noise: np.random.Generator | None = None,
    ):
        self.rows = rows
        self.spec = spec
        self.noise = noise
        self.facts = facts(spec)
        self.sizes = bind(spec, sizes)
        self.real = real
        self.storage = storage
        held = {t.name: self._input(t.name, inputs) for t in spec.inputs}
        self.values = Values(held, {**self.sizes, **dict(spec.attributes)}, real)

    def tensors(self) -> dict[str, np.ndarray]:
        """Every tensor of the spec, by name."""
        with np.errstate(all="ignore"):
            for e in ordered(self.spec):
                together = stepped(self.spec, e.target)
                if together is None:
                    with self._operands(e):
                        made = self._equation(e)
                    self.values.tensors[e.target] = made
                elif e.target == together.targets[0]:
                    self._recurrence(together)
        return self.values.tensors

    @contextmanager
    def _operands(self, e: Equation) -> Iterator[None]:
        """A context in which the operands of an equation are rounded, if the spec allows it."""
        tensors = self.values.tensors
        read = e.sources() if e.target in self.spec.rounded and self.real is np.float32 else ()
        kept = {name: tensors[name] for name in read if tensors[name].dtype == np.float32}
        tensors.update((name, round_to(array, "tf32")) for name, array in kept.items())
        try:
            yield
        finally:
            tensors.update(kept)

    def _recurrence(self, found: Recurrence) -> None:
        """Evaluates the equations of a recurrence step by step."""
        equations = [self.spec.equation(t) for t in found.targets]
        self.values.tensors.update((e.target, self._empty(e)) for e in equations)
        steps = range(value(self.facts.ranges[found.index].high, self.sizes))
        for at in reversed(steps) if found.backwards else steps:
            for e in equations:
                out = self.values.tensors[e.target]
                spans = {i: self._span(self.facts.ranges[i]) for i in e.indices}
                spans[found.index] = Span.between(found.index, at, at + 1)
                self._block(e, spans, out)
                piece = tuple(spans[i].piece for i in e.indices)
                out[piece] = self._rounded(e.target, out[piece])

    def _input(self, name: str, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
        expected = shape(self.facts.tensors[name], self.sizes)
        if name not in inputs:
            raise KernelError(
                f"`{self.spec.name}` is not given its input `{name}`",
                allowed=", ".join(t.name for t in self.spec.inputs),
                hint="give every input by its name",
            )
        array = np.asarray(inputs[name])
        if array.shape != expected:
            raise KernelError(
                f"the input `{name}` has the shape {array.shape}",
                allowed=str(expected),
                hint="the sizes given fix the shapes",
            )
        dtype = self.facts.tensors[name].dtype
        if self.rows is WHOLE:
            held: np.ndarray = array.astype(self._kind(dtype), copy=False)
            return self._off(held, 53 if dtype == "f64" else 24)
        # Some inputs are needed whole, with too many elements to perturb.
        runs = self.rows.tensors.get(name)
        if runs is None:
            return array.astype(self._kind(dtype), copy=False)
        held = np.zeros(array.shape, self._kind(dtype))
        for piece in _pieces(runs, array.ndim):
            held[piece] = array[piece]
        return held

    def _kind(self, dtype: str) -> type:
        if dtype in FLOATS:
            return self.real
        return np.bool_ if dtype == "b8" else np.int64

    def _rounded(self, name: str, array: np.ndarray) -> np.ndarray:
        dtype = self.facts.tensors[name].dtype
        if array.dtype.kind == "i":
            return whole(array, dtype)
        array = self._off(array, BITS.get(self.storage, 53 if self.storage == "f64" else 24))
        if dtype == "tf32" and self.storage == "f32":
            return round_to(array, dtype).astype(self.real)
        if array.dtype.kind != "f" or self.storage not in BITS:
            return array
        if dtype == self.storage or dtype in EIGHT:
            return round_to(array, dtype).astype(self.real)
        rounded = round_bits(array, BITS[self.storage])
        return rounded if dtype == "f64" else round_to(rounded, "f32").astype(self.real)

    def _off(self, array: np.ndarray, bits: int) -> np.ndarray:
        """The floats of an array, each perturbed by up to one unit in the last of `bits` bits."""
        if self.noise is None or array.dtype.kind != "f":
            return array
        off = self.noise.uniform(-1.0, 1.0, array.shape) * 2.0 ** (1 - bits)
        return (array * (1.0 + off)).astype(array.dtype)

    def _equation(self, e: Equation) -> np.ndarray:
        out = self._empty(e)
        outer = dict.fromkeys(n.name for x in e.at for n in x.walk() if isinstance(n, Index))
        spans = {i: self._span(self.facts.ranges[i]) for i in outer}
        runs = self.rows.tensors.get(e.target)
        if runs is None:
            self._block(e, spans, out)
            return self._rounded(e.target, out)
        for piece in _pieces(runs, out.ndim):
            some = {e.indices[axis]: piece[axis] for axis in runs}
            parts = {i: Span.between(i, run.start, run.stop) for i, run in some.items()}
            self._block(e, {**spans, **parts}, out)
            out[piece] = self._rounded(e.target, out[piece])
        return out

    def _empty(self, e: Equation) -> np.ndarray:
        tensor = self.facts.tensors[e.target]
        return np.zeros(shape(tensor, self.sizes), self._kind(tensor.dtype))

    def _span(self, r: Range) -> Span:
        return Span.between(r.index, 0, value(r.high, self.sizes))

    def _block(self, e: Equation, outer: dict[str, Span], out: np.ndarray) -> None:
        """Evaluates an equation over spans of its left side.

        Large blocks are halved along the longest span.
        """
        inner = dict(outer)
        ranges = {r.index: r for r in e.value.ranges} if isinstance(e.value, Reduce) else {}
        for i in e.reduced:
            r = ranges.get(i, self.facts.ranges[i])
            if r.jagged or r.partial and not _masked(e.value):
                inner[i] = self._segments(r, inner)
            else:
                inner[i] = self._span(self.facts.ranges[i] if r.partial else r)
        widest, size = _widest(e, inner)
        fixed = (e.value.along,) if isinstance(e.value, Scan) else ()
        splits = [i for i in widest if i in outer and i not in fixed and outer[i].values.size > 1]
        if size <= LARGEST_BLOCK or not splits:
            long = self.facts.tensors[e.target].dtype == "i64"
            self._store(e, self._right_side(e.value, outer, inner, long), outer, out)
            return
        largest = max(splits, key=lambda i: outer[i].values.size)
        for half in outer[largest].halves():
            self._block(e, {**outer, largest: half}, out)

    def _store(self, e: Equation, found: Labelled, outer: Spans, out: np.ndarray) -> None:
        if not e.accumulate:
            out[tuple(outer[i].piece for i in e.indices)] = found.along(e.indices)
            return
        axes = tuple(outer)
        full = tuple(outer[i].values.size for i in axes)
        places = [np.broadcast_to(self.values.of(x, outer).along(axes), full) for x in e.at]
        for place, length in zip(places, out.shape, strict=True):
            if place.size and not (place.min() >= 0 and place.max() < length):
                raise KernelError(
                    f"`{e.target}` is written at {place.min()} to {place.max()}",
                    place=e.place,
                    allowed=f"0 to {length - 1}",
                    hint="give positions that lie in the tensor",
                )
        np.add.at(out, tuple(places), np.broadcast_to(found.along(axes), full))

    def _right_side(self, expr: Expr, outer: Spans, inner: Spans, long: bool) -> Labelled:
        """The values of a right side.

        long: integers are reduced as i64, else as i32; this decides the identity element of max and
            min.
        """
        if isinstance(expr, Scan):
            return _scanned(expr, self.values.of(expr.body, inner), inner, long)
        if not isinstance(expr, Reduce):
            return self.values.of(expr, inner)
        if any(r.jagged or r.partial and not _masked(expr) for r in expr.ranges):
            return self._jagged(expr, outer, inner, long)
        if any(r.partial for r in expr.ranges):
            return self._parts(expr, inner)
        serial = expr.reduction == "sum" and self._is_serial(expr, inner)
        if expr.reduction == "sum" and len(factors(expr.body)) > 1 and not serial:
            parts = [self.values.of(f, inner) for f in factors(expr.body)]
            kinds = {p.data.dtype.kind for p in parts}
            alike = self.real if "f" in kinds else np.int64
            parts = [Labelled(p.axes, p.data.astype(alike, copy=False)) for p in parts]
            return product_sum(parts, expr.over)
        return _reduced(expr.reduction, self.values.of(expr.body, inner), expr.over, serial)

    def _parts(self, expr: Reduce, inner: Spans) -> Labelled:
        """A sum of products over partial ranges: terms outside the ranges are multiplied by 0."""
        parts = [self.values.of(f, inner) for f in factors(expr.body)]
        for r in (r for r in expr.ranges if r.partial):
            place = self.values.of(Index(r.index), inner)
            low, high = self.values.of(r.low, inner), self.values.of(r.high, inner)
            axes = union((place, low, high))
            at, first, after = (v.along(axes) for v in (place, low, high))
            parts.append(Labelled(axes, (first <= at) & (at < after)))
        parts = [Labelled(p.axes, p.data.astype(self.real, copy=False)) for p in parts]
        return product_sum(parts, expr.over)

    def _is_serial(self, expr: Reduce, inner: Spans) -> bool:
        """Whether a sum adds its terms sequentially: of f32, if its terms fit one temporary
        array."""
        if self.noise is None or self.real is not np.float32:
            return False
        free = {n.name for n in expr.body.walk() if isinstance(n, Index)} | set(expr.over)
        return math.prod(inner[i].values.size for i in free) <= LARGEST_BLOCK

    def _segments(self, r: Range, spans: Spans) -> Span:
        """A jagged index as one axis with the values of all segments, concatenated."""
        _, starts, lengths = self._bounds(r, spans)
        before = np.cumsum(lengths) - lengths
        values = np.arange(lengths.sum()) + np.repeat(starts - before, lengths)
        return Span(_SEGMENT, values)

    def _bounds(self, r: Range, spans: Spans) -> tuple[Labelled, np.ndarray, np.ndarray]:
        """The lower bounds with their axes; the starts and lengths of all segments, flattened."""
        low, high = self.values.of(r.low, spans), self.values.of(r.high, spans)
        axes = union((low, high))
        full = np.broadcast_shapes(low.along(axes).shape, high.along(axes).shape)
        starts = np.broadcast_to(low.along(axes), full)
        lengths = np.maximum(high.along(axes) - starts, 0)
        return Labelled(axes, starts), starts.ravel(), lengths.ravel()

    def _jagged(self, expr: Reduce, outer: Spans, inner: Spans, long: bool) -> Labelled:
        r = next(r for r in expr.ranges if r.jagged or r.partial)
        bounds, _, lengths = self._bounds(r, outer)
        # Evaluate the body once over all concatenated segments, then reduce each segment.
        segment = np.repeat(np.arange(lengths.size), lengths)
        places = np.unravel_index(segment, bounds.data.shape) if bounds.axes else ()
        along = {
            i: Span(_SEGMENT, outer[i].values[place])
            for i, place in zip(bounds.axes, places, strict=True)
        }
        body = self.values.of(expr.body, {**inner, **along})
        others = tuple(i for i in expr.over if i != r.index)
        body = _reduced(expr.reduction, body, others) if others else body
        rest = tuple(a for a in body.axes if a != _SEGMENT)
        data = body.along((_SEGMENT, *rest))
        data = counted(data) if expr.reduction in ("sum", "prod") else data
        reduced = _by_segment(expr.reduction, data, lengths, long)
        return Labelled(bounds.axes + rest, reduced.reshape(bounds.data.shape + reduced.shape[1:]))


def _pieces(runs: Mapping[int, Runs], axes: int) -> Iterator[tuple[slice, ...]]:
    """Each block of a tensor where runs of all sampled axes intersect."""
    yield from product(*(runs.get(axis, (slice(None),)) for axis in range(axes)))


def _masked(value: Expr) -> bool:
    """Whether the whole range of an index is evaluated for a reduction over part of it."""
    return isinstance(value, Reduce) and value.reduction == "sum"


def _widest(e: Equation, spans: Spans) -> tuple[list[str], int]:
    """The indices of an equation's largest temporary array, and its number of elements."""
    product = isinstance(e.value, Reduce) and e.value.reduction == "sum"
    parts = factors(e.reduce.body) if product else [e.value]
    found = [list(dict.fromkeys(n.name for n in p.walk() if isinstance(n, Index))) for p in parts]
    if product:
        found.append([i for i in spans if i not in e.reduced])
    if not product or len(parts) == 1 or any(s.piece is None for s in spans.values()):
        found = [list(spans)]
    sized = [(math.prod(spans[i].values.size for i in indices), indices) for indices in found]
    size, indices = max(sized)
    return indices, size


def _reduced(
    reduction: str, body: Labelled, over: tuple[str, ...], serial: bool = False
) -> Labelled:
    kept = tuple(a for a in body.axes if a not in over)
    data = body.along(kept + over)
    if reduction in _ARGUMENTS:
        flat = data.reshape(*data.shape[: len(kept)], -1)
        return Labelled(kept, np.asarray(_ARGUMENTS[reduction](flat, axis=-1)))
    if reduction in ("sum", "prod"):
        data = counted(data)
    if serial and data.size:
        return Labelled(kept, _serial_sum(data.reshape(*data.shape[: len(kept)], -1)))
    axis = tuple(range(len(kept), data.ndim))
    return Labelled(kept, np.asarray(_REDUCTIONS[reduction].reduce(data, axis=axis)))


def _serial_sum(data: np.ndarray) -> np.ndarray:
    """The sum along the last axis, by runs of SERIAL terms that are added sequentially."""
    runs = [
        np.add.accumulate(data[..., at : at + SERIAL], axis=-1)[..., -1]
        for at in range(0, data.shape[-1], SERIAL)
    ]
    return np.asarray(np.sum(runs, axis=0, dtype=data.dtype))


def _by_segment(reduction: str, data: np.ndarray, lengths: np.ndarray, long: bool) -> np.ndarray:
    """Reduces consecutive segments of the first axis; an empty segment gives the identity
    element."""
    out = np.full(
        (lengths.size, *data.shape[1:]), _identity(reduction, data.dtype, long), data.dtype
    )
    filled = lengths > 0
    if filled.any():
        starts = (np.cumsum(lengths) - lengths)[filled]
        out[filled] = _REDUCTIONS[reduction].reduceat(data, starts, axis=0)
    return out


def _identity(reduction: str, dtype: np.dtype, long: bool) -> float | int | bool:
    """The identity element of a reduction: the lowest value for max, the highest for min."""
    if reduction in ("max", "min"):
        sign = -1 if reduction == "max" else 1
        if dtype.kind == "f":
            return sign * math.inf
        whole = np.iinfo(np.int64 if long else np.int32)
        limits = (0, 1) if dtype.kind == "b" else (whole.min, whole.max)
        return limits[reduction == "min"]
    return {"sum": 0, "prod": 1, "any": False, "all": True}[reduction]


def _scanned(expr: Scan, body: Labelled, spans: Spans, long: bool) -> Labelled:
    axis = body.axes.index(spans[expr.along].axis)
    data = counted(body.data) if expr.reduction in ("sum", "prod") else body.data
    data = np.flip(data, axis) if expr.reverse else data
    result = _REDUCTIONS[expr.reduction].accumulate(data, axis=axis)
    if expr.exclusive:
        first = np.full_like(result.take([0], axis), _identity(expr.reduction, result.dtype, long))
        rest = np.delete(result, -1, axis)
        result = np.concatenate([first, rest], axis)
    return Labelled(body.axes, np.flip(result, axis) if expr.reverse else result)
