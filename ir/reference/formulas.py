"""Computes large inputs by a formula from each element's position.

Drawing a gigabyte element by element takes seconds, and so does sending it to a device. With a
formula each part can be computed independently: a reference at some rows computes what these rows
read, and a device computes all of it. One formula serves numpy arrays and PyTorch tensors. It uses
integers that wrap, and 32-bit floats whose operations all round to nearest, so both give the same
bits.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from math import inf, isfinite, nan, prod
from statistics import NormalDist
from typing import Any

import numpy as np

from ir.reference.draws import INFINITE, LARGE, NAN, POSITIVE, SHIFT, TINY, changes, drawn
from ir.reference.draws import MOST as MOST_SHIFT
from ir.reference.inputs import LEAST, WHOLE, Use, drawn_alone, random_inputs, uses
from ir.reference.rounding import HELD_AS, round_to
from ir.reference.rows import Rows
from ir.sizes import bind, shape
from ir.spec import EIGHT, FLOATS, Spec, Tensor

MANY = 1 << 22  # elements of inputs and outputs above which large inputs are computed by formulas
FEW = 1 << 20  # elements of an input that is still drawn
PART = (
    1 << 22
)  # elements that are computed at a time, so that intermediate results stay in a device's cache
MOST = (1 << 31) - 1  # positions are 32-bit signed integers
_SCALED = {"large": LARGE, "tiny": TINY}
_PLANTED = {NAN: nan, INFINITE: -inf, POSITIVE: inf}
# The draws that formulas support.
DRAWS = ("", *_SCALED, "shifted", "zero_rows", "ties", *_PLANTED, "ends")
_OF_FIRST = ("shifted", *_PLANTED)  # draws that change only the first float input
_FORMATS = ("f32", "f16", "bf16", *EIGHT)
_POSITIVE = 0x7FFFFFFF
_LOW = 0xFFFF
_QUANTILES = 1 << 16  # each value of these bits of a hash selects one


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """The operations that differ between numpy and PyTorch."""

    table: Callable[[Any], Any]  # the entries of `quantiles`, as f32
    floats: Callable[[Any], Any]  # integers as f32
    long: Callable[[Any], Any]  # integers as i64


@dataclass(frozen=True, slots=True)
class Formula:
    """The elements of a tensor as a function of their positions."""

    dtype: str
    dims: tuple[int, ...]
    keys: tuple[int, int]  # i32
    draw: str = ""
    within: tuple[int, int] | None = None  # of integers: the least value, and the end
    limits: tuple[float, float] | None = None  # of floats
    positive: bool = False
    shift: float = 0.0
    planted: float | None = None  # a value in every fourth row

    def at(self, places: Any, by: Arithmetic) -> Any:
        """The elements at flat positions (i32, row-major): floats as f32, integers as i64, b8 as
        integers."""
        if self.dtype in FLOATS:
            return self._floats(places, by)
        found = _hashed(places, self.keys)
        if self.dtype == "b8":
            return found & 1
        low, end = self.within or (-WHOLE, WHOLE + 1)
        if self.draw == "ends" and self.within:
            return by.long(places & 1) * (low - (end - 1)) + (end - 1)
        return by.long((found & _POSITIVE) % (end - low)) + low

    def _floats(self, places: Any, by: Arithmetic) -> Any:
        found = _hashed(places, self.keys)
        low, high = self.limits or (-1.0, 1.0)
        if low < 0.0 < high:
            made = by.table(found & _LOW)
            more = by.floats(found >> 16)  # interpolates
            more *= 2.0**-29
            more += 1.0
            made *= more
            if self.positive:
                made = abs(made)
                made += LEAST
        else:  # in every part of the range
            made = by.floats(found & (_POSITIVE >> 7))
            made *= 2.0**-24
            made *= high - low
            made += low
        if self.draw in _SCALED:
            made *= _SCALED[self.draw]
        if self.shift:
            made += self.shift
        if self.draw == "ties":
            made = made.round()
            made += 0.0  # makes -0.0 positive
            made = made.clip(1.0, None) if self.positive else made
        if self.draw == "zero_rows" and len(self.dims) > 1 and not self.positive:
            made *= by.floats((places // self.dims[-1]) & 1)
            made += 0.0  # makes -0.0 positive
        if self.planted is not None:
            made[self._fourth_rows(places)] = self.planted
        return made if self.limits is None else made.clip(*self.limits)

    def _fourth_rows(self, places: Any) -> Any:
        """Whether a position is the one of its row that is planted.

        In every fourth row this is the first, the middle or the last position, alternately.
        """
        width = self.dims[-1] if len(self.dims) > 1 else 1
        row, at = places // width, places % width
        turn, found = (row >> 2) % 3, row < 0
        for number, place in enumerate((0, width // 2, width - 1)):
            found |= (turn == number) & (at == place)
        return found & ((row & 3) == 1)

    def filled(self, rows: Mapping[int, tuple[slice, ...]] | None = None) -> np.ndarray:
        """The tensor as an array.

        rows: by axis, the runs to compute. The rest is zeros, and takes no memory until it is
            accessed.
        """
        made: np.ndarray = np.zeros(self.dims, HELD_AS[self.dtype])
        runs = rows or {}
        whole = (slice(0, n) for n in self.dims)
        for piece in product(*(runs.get(axis, (one,)) for axis, one in enumerate(whole))):
            for part in _parts(piece):
                made[part] = round_to(self.at(self._places(part), NUMPY), self.dtype)
        return made

    def _places(self, part: tuple[slice, ...]) -> np.ndarray:
        """The flat positions of a part of the tensor, in its shape."""
        found, stride = np.zeros((1,) * len(part), np.int32), 1
        for axis in reversed(range(len(part))):
            along = np.arange(part[axis].start, part[axis].stop, dtype=np.int64) * stride
            dims = [1] * len(part)
            dims[axis] = len(along)
            found = found + along.astype(np.int32).reshape(dims)
            stride *= self.dims[axis]
        return found


@dataclass(slots=True)
class Formulas(Mapping[str, np.ndarray]):
    """Inputs by name, of which the large ones are computed by formulas. Callers must not write to
    them."""

    names: tuple[str, ...]
    formulas: Mapping[str, Formula]
    given: Mapping[str, np.ndarray]  # inputs that are drawn
    held: dict[str, np.ndarray] = field(default_factory=dict)  # arrays that were requested

    def __getitem__(self, name: str) -> np.ndarray:
        if name in self.given:
            return self.given[name]
        if name not in self.held:
            self.held[name] = self.formulas[name].filled()
        return self.held[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays that take memory now."""
        return {**self.given, **self.held}

    def hold(self) -> None:
        """Computes all arrays, so that processes forked afterwards share them."""
        for name in self:
            _ = self[name]

    def needed(self, rows: Rows) -> dict[str, np.ndarray]:
        """What a reference at some rows reads; the rest of each array is zeros."""
        arrays = self.arrays()
        made = {
            n: f.filled(rows.tensors.get(n)) for n, f in self.formulas.items() if n not in arrays
        }
        return {name: made[name] if name in made else arrays[name] for name in self}


def formulas(spec: Spec, sizes: Mapping[str, int], seed: int, draw: str = "") -> Formulas | None:
    """The inputs that a seed draws, as a pure function of the arguments.

    None if inputs and outputs have few elements, or if the draw has no formulas. Inputs that are
    small or have no formula are drawn.

    draw: as in `drawn`.
    """
    bound = bind(spec, sizes)
    counts = _counts(spec, bound)
    if sum(counts.values()) < MANY or draw not in DRAWS:
        return None
    use = uses(spec, bound)
    large = [t for t in spec.inputs if _has_formula(t, counts[t.name], use)]
    first = next((t.name for t in spec.inputs if t.dtype in FLOATS), "")
    found = {}
    for t in large:
        keys = struct.unpack("<ii", hashlib.sha256(f"{seed} {draw} {t.name}".encode()).digest()[:8])
        changed = t.name == first and draw in _OF_FIRST
        kept = t.name in use.positive
        found[t.name] = Formula(
            dtype=t.dtype,
            dims=shape(t, bound),
            keys=keys,
            draw=draw,
            within=use.within.get(t.name),
            limits=use.limits.get(t.name),
            positive=kept,
            shift=MOST_SHIFT.get(t.dtype, SHIFT) if changed and draw == "shifted" else 0.0,
            planted=_PLANTED.get(draw) if changed and not kept else None,
        )
    rng = _generator(seed, draw)
    others = [t for t in spec.inputs if t.name not in found]
    made = drawn_alone(others, bound, use, rng)
    if draw and not (draw in _OF_FIRST and first in found):
        made |= changes(others, made, use, draw)
    given = {t.name: round_to(made[t.name], t.dtype) for t in others}
    return Formulas(tuple(t.name for t in spec.inputs), found, given)


def all_follow(spec: Spec, sizes: Mapping[str, int]) -> bool:
    """Whether there are many elements, and all large inputs have formulas. Draws nothing."""
    bound = bind(spec, sizes)
    counts, use = _counts(spec, bound), uses(spec, bound)
    few = (counts[t.name] <= FEW or _has_formula(t, counts[t.name], use) for t in spec.inputs)
    return many(spec, sizes) and all(few)


def many(spec: Spec, sizes: Mapping[str, int]) -> bool:
    """Whether inputs and outputs have so many elements that large inputs are computed by
    formulas."""
    return sum(_counts(spec, bind(spec, sizes)).values()) >= MANY


def inputs_of(
    spec: Spec, sizes: Mapping[str, int], seed: int, draw: str = ""
) -> tuple[Mapping[str, np.ndarray], np.random.Generator]:
    """The inputs that a seed draws, and the generator in its state after them.

    A pure function of the arguments.

    draw: as in `drawn`; empty for normal inputs.
    """
    found, rng = formulas(spec, sizes, seed, draw), _generator(seed, draw)
    if found is not None:
        return found, rng
    return (drawn(spec, sizes, rng, draw) if draw else random_inputs(spec, sizes, rng)), rng


def arrays_of(inputs: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
    """The arrays of inputs that take memory now."""
    return inputs.arrays() if isinstance(inputs, Formulas) else inputs


@cache
def quantiles() -> np.ndarray:
    """Equally probable quantiles of the normal distribution, as f32."""
    normal = NormalDist()
    places = ((n + 0.5) / _QUANTILES for n in range(_QUANTILES))
    return np.array([normal.inv_cdf(at) for at in places], np.float32)


def _counts(spec: Spec, sizes: Mapping[str, int]) -> dict[str, int]:
    """The number of elements of each input and output. sizes: derived ones included."""
    return {t.name: prod(shape(t, sizes)) for t in (*spec.inputs, *spec.outputs)}


def _generator(seed: int, draw: str) -> np.random.Generator:
    return np.random.default_rng([seed, *draw.encode()] if draw else seed)


def _has_formula(tensor: Tensor, count: int, use: Use) -> bool:
    """Whether a tensor of `count` elements is large, and of a kind that has a formula."""
    if not FEW < count < MOST:
        return False
    searched = {name for found in use.borders.values() for name in found}
    if tensor.name in {*use.bounds, *use.ends.values(), *use.borders, *searched}:
        return False
    if tensor.dtype not in FLOATS:
        first, end = use.within.get(tensor.name, (0, 1))
        return end - first < MOST
    low, high = use.limits.get(tensor.name, (-1.0, 1.0))
    return tensor.dtype in _FORMATS and (low < 0.0 < high or isfinite(high - low))


def _hashed(places: Any, keys: tuple[int, int]) -> Any:
    """A distinct 32-bit hash of each position: two rounds of multiplications and shifts."""
    found = places ^ keys[0]
    for key in keys[1], 0:
        found ^= (found >> 16) & _LOW
        found *= 0x7FEB352D
        found ^= (found >> 15) & (_POSITIVE >> 14)
        found *= 0x846CA68B - (1 << 32)
        found ^= (found >> 16) & _LOW
        found += key
    return found


def _parts(piece: tuple[slice, ...]) -> Iterator[tuple[slice, ...]]:
    """Divides a piece of a tensor into parts of at most PART elements."""
    lengths = [run.stop - run.start for run in piece]
    if prod(lengths) <= PART:
        yield piece
        return
    axis = next(n for n, length in enumerate(lengths) if length > 1)
    middle = piece[axis].start + lengths[axis] // 2
    for half in (slice(piece[axis].start, middle), slice(middle, piece[axis].stop)):
        yield from _parts((*piece[:axis], half, *piece[axis + 1 :]))


NUMPY = Arithmetic(
    table=lambda at: quantiles()[at],
    floats=lambda x: x.astype(np.float32),
    long=lambda x: x.astype(np.int64),
)
