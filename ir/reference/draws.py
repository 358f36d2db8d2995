"""Inputs that are not normally distributed, which expose range faults of a kernel.

The scales are mild: plain arithmetic in a spec's formats stays finite in most of these draws, even
in the small range of 16 bits. A spec declares what it excludes: `range(i, 0, N)`,
`range(x, -8.0, 8.0)`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ir.contraction import contraction
from ir.dtypes import is_bool
from ir.reference.inputs import Use, random_inputs, uses
from ir.reference.rounding import HELD_AS, round_to
from ir.sizes import bind
from ir.spec import EIGHT, FLOATS, Apply, Bucketize, Range, Read, Spec, Tensor

LARGE = 16.0  # overflows 16 bits if values are not normalised first
TINY = 2.0**-10  # its squares are about as large as the epsilons that keep a quotient finite
SHIFT = 1000.0  # exp without subtracting the maximum overflows; E[x^2] - E[x]^2 cancels
MOST = {"f8e4m3": 448.0 / 8, "f8e5m2": 57344.0 / 8}  # largest shift of 8-bit floats
NAN = "nan"
INFINITE = "infinite"  # negative, like the values that masks add
POSITIVE = "positive_infinite"
DENORMAL = "denormal"
FLUSHED = 2.0**-126  # below it f32 is denormal; a unit can flush such a number to 0
# Standard deviation of a draw of denormal numbers: most values of the draw are denormal in these
# formats.
_DENORMAL = {"f16": 2.0**-17, "f8e4m3": 2.0**-8, "f8e5m2": 2.0**-16}
_DENORMAL_WIDE = 2.0**-131
_ROWS = 12  # rows are scaled by 2^-_ROWS/2 to 2^_ROWS/2
WIDE = 2**40  # the largest i64 that is drawn: sums of it do not overflow
_EQUAL = 0.75  # value of every element of a draw of equal elements
# Integer functions whose results for some integers differ between processors.
_PARTIAL = frozenset("shl shr pow div floordiv mod fmod abs neg sign square mul".split())

# A matmul of f32 can split its operands for units of lower precision (3xTF32). The parts of an
# infinite operand are infinite and NaN, so matmuls get no infinite operand. With only these
# functions the order of operations does not decide whether a positive infinity becomes NaN.
_PLAIN = frozenset("add sub neg mul abs relu maximum minimum where lt le gt ge eq ne".split())

_Arrays = Mapping[str, np.ndarray]
_Change = Callable[[list[Tensor], _Arrays, Use], dict[str, np.ndarray]]


def draws(spec: Spec) -> tuple[str, ...]:
    """The names of a spec's draws besides the normal one, without those that change nothing."""
    found: list[str] = []
    floats = [t for t in spec.inputs if t.dtype in FLOATS]
    if floats:
        numbers = bool(floats[0].range) or set(EIGHT) & _dtypes(spec)
        left = {NAN, INFINITE, POSITIVE} if numbers else set()
        if not _functions(spec) <= _PLAIN:
            left.add(POSITIVE)
        if any(contraction(e) for e in spec.equations):
            left |= {INFINITE, POSITIVE}
        found += [d for d in _FLOATS if d not in left]
    if _has_positions(spec):
        found += _POSITIONS
    if _free_integers(spec):
        found += _WHOLE
    return tuple(found)


def drawn(
    spec: Spec, sizes: Mapping[str, int], rng: np.random.Generator, draw: str
) -> dict[str, np.ndarray]:
    """The inputs of a draw by name, in their dtypes.

    In most kernels the first float input is data and no weight.

    large, tiny: all floats scaled.
    shifted, lowered, denormal: the first float input changed.
    nan, infinite, positive_infinite: an element in every fourth row of the first float input.
    ties: all floats whole and small.
    equal: all elements of each float input equal.
    scaled_rows: each row of the first float input multiplied by another power of 2.
    zero_rows: every other row of each float input of two or more dimensions, unless a divisor, a
        logarithm or a sorted tensor needs it.
    ends, repeated, ascending: entries of integer inputs that are positions.
    whole: integers over the range of their dtype.
    """
    made = random_inputs(spec, sizes, rng)
    found = changes(spec.inputs, made, uses(spec, bind(spec, sizes)), draw, _free_integers(spec))
    dtypes = {t.name: t.dtype for t in spec.inputs}
    return {**made, **{name: round_to(a, dtypes[name]) for name, a in found.items()}}


def changes(
    inputs: Sequence[Tensor], made: _Arrays, use: Use, draw: str, free: Sequence[Tensor] = ()
) -> dict[str, np.ndarray]:
    """The inputs that a draw changes from normally drawn ones, before rounding to their dtypes.

    inputs: all inputs of a spec, or some, with the first float input first.
    free: integers that can have any value.
    """
    if draw == "whole":
        tensors = list(free)
    elif draw in _POSITIONS:
        tensors = [t for t in inputs if t.name in use.within and t.name not in use.bounds]
    else:
        tensors = [t for t in inputs if t.dtype in FLOATS]
    return {
        name: np.clip(a, *use.limits[name]) if name in use.limits else a
        for name, a in (_ALL[draw](tensors, made, use) if tensors else {}).items()
    }


def flushed(inputs: _Arrays) -> dict[str, np.ndarray]:
    """Flushes denormal f32 numbers of inputs to 0, as units do that do not support them."""
    return {
        name: np.where(np.abs(a) < FLUSHED, a.dtype.type(0), a) if a.dtype == np.float32 else a
        for name, a in inputs.items()
    }


def _dtypes(spec: Spec) -> set[str]:
    return {t.dtype for t in (*spec.inputs, *spec.outputs)}


def _functions(spec: Spec) -> set[str]:
    nodes = [n for e in spec.equations for x in (*e.at, e.value) for n in x.walk()]
    return {n.function for n in nodes if isinstance(n, Apply)}


def _has_positions(spec: Spec) -> bool:
    """Whether a read or written position depends on data, or an integer input declares a range."""
    reads = [n for e in spec.equations for x in (*e.at, e.value) for n in x.walk()]
    places = [x for n in reads if isinstance(n, Read) for x in n.at]
    places += [x for e in spec.equations for x in e.at]
    read = any(isinstance(n, Read) for x in places for n in x.walk())
    return read or any(t.range and t.dtype not in FLOATS for t in spec.inputs)


def _free_integers(spec: Spec) -> list[Tensor]:
    """Integer inputs that can have any value of their dtype.

    Empty if the equations apply functions that are not defined for every integer, or if integers
    are positions or ranges.
    """
    nodes = [n for e in spec.equations for x in (*e.at, e.value) for n in x.walk()]
    if _has_positions(spec) or any(
        isinstance(n, Bucketize)
        or isinstance(n, Range)
        and n.jagged
        or isinstance(n, Apply)
        and n.function in _PARTIAL
        for n in nodes
    ):
        return []
    return [t for t in spec.inputs if t.dtype not in FLOATS and not is_bool(t.dtype)]


def _scaled(by: float) -> _Change:
    def scaled(floats: list[Tensor], made: _Arrays, use: Use) -> dict[str, np.ndarray]:
        return {t.name: _wide(made[t.name]) * by for t in floats}

    return scaled


def _shifted(floats: list[Tensor], made: _Arrays, use: Use) -> dict[str, np.ndarray]:
    first = floats[0]
    return {first.name: _wide(made[first.name]) + MOST.get(first.dtype, SHIFT)}


def _lowered(floats: list[Tensor], made: _Arrays, use: Use) -> dict[str, np.ndarray]:
    first = floats[0]
    if first.name in _kept(use):
        return {}
    return {first.name: _wide(made[first.name]) - MOST.get(first.dtype, SHIFT)}


def _denormal(floats: list[Tensor], made: _Arrays, use: Use) -> dict[str, np.ndarray]:
    first = floats[0]
    if first.name in _kept(use):
        return {}
    return {first.name: _wide(made[first.name]) * _DENORMAL.get(first.dtype, _DENORMAL_WIDE)}


def _planted(*values: float) -> _Change:
    def planted(floats: list[Tensor], made: _Arrays, use: Use) -> dict[str, np.ndarray]:
        first = floats[0]
        array = _wide(made[first.name]).copy()
        if first.name in _kept(use) or not array.size:
            return {}
        rows = array.reshape(-1, array.shape[-1]) if array.ndim > 1 else array.reshape(-1, 1)
        for number, value in enumerate(values):
            some = rows[1 + 4 * number :: 4 * len(values)]
            for at, place in enumerate((0, some.shape[1] // 2, some.shape[1] - 1)):
                some[at::3, place] = value
        return {first.name: array}

    return planted


def _ties(floats: list[Tensor], made: _Arrays, use: Use) -> dict[str, np.ndarray]:
    found = {t.name: np.rint(_wide(made[t.name])) for t in floats if t.name not in use.borders}
    return {name: np.maximum(a, 1) if name in use.positive else a for name, a in found.items()}


def _equal(floats: list[Tensor], made: _Arrays, use: Use) -> dict[str, np.ndarray]:
    return {
        t.name: np.full(made[t.name].shape, _EQUAL) for t in floats if t.name not in use.borders
    }


def _scaled_rows(floats: list[Tensor], made: _Arrays, use: Use) -> dict[str, np.ndarray]:
    first = floats[0]
    array = _wide(made[first.name])
    if array.ndim < 2 or first.name in use.borders:
        return {}
    rows = array.reshape(-1, array.shape[-1])
    powers = np.arange(len(rows)) * 5 % (_ROWS + 1) - _ROWS / 2
    return {first.name: (rows * 2.0 ** powers[:, None]).reshape(array.shape)}


def _zero_rows(floats: list[Tensor], made: _Arrays, use: Use) -> dict[str, np.ndarray]:
    found = {}
    for t in floats:
        if made[t.name].ndim > 1 and t.name not in _kept(use):
            rows = made[t.name].reshape(-1, made[t.name].shape[-1]).copy()
            rows[::2] = 0
            found[t.name] = rows.reshape(made[t.name].shape)
    return found


def _placed(at: Callable[[int, int, int], np.ndarray]) -> _Change:
    """at: given a count, the least and the largest position, returns the entries."""

    def placed(tensors: list[Tensor], made: _Arrays, use: Use) -> dict[str, np.ndarray]:
        found = {}
        for t in tensors:
            low, end = use.within[t.name]
            array = made[t.name]
            found[t.name] = at(array.size, low, end - 1).reshape(array.shape)
        return found

    return placed


def _ends(count: int, low: int, high: int) -> np.ndarray:
    return np.where(np.arange(count) % 2, low, high)


def _repeated(count: int, low: int, high: int) -> np.ndarray:
    return np.full(count, (low + high) // 2)


def _ascending(count: int, low: int, high: int) -> np.ndarray:
    return np.sort(low + np.arange(count) % (high - low + 1))


def _whole(tensors: list[Tensor], made: _Arrays, use: Use) -> dict[str, np.ndarray]:
    found = {}
    for number, t in enumerate(tensors):
        limits = np.iinfo(HELD_AS[t.dtype])
        low, high = max(int(limits.min), -WIDE), min(int(limits.max), WIDE)
        array = made[t.name]
        rng = np.random.default_rng(abs(int(array.sum())))  # different entries for different inputs
        entries = rng.integers(low, high + 1, array.size)
        # At different places in each tensor, as the sum of two least entries is 0.
        entries[number % 7 :: 7], entries[(number + 3) % 7 :: 7] = low, high
        found[t.name] = entries.reshape(array.shape)
    return found


def _kept(use: Use) -> set[str]:
    """The floats that a divisor, a logarithm or a sorted tensor needs as they are."""
    return use.positive | set(use.borders)


def _wide(array: np.ndarray) -> np.ndarray:
    return np.asarray(array, np.float64)


_FLOATS: Mapping[str, _Change] = {
    "large": _scaled(LARGE),
    "tiny": _scaled(TINY),
    "shifted": _shifted,
    "lowered": _lowered,
    "zero_rows": _zero_rows,
    DENORMAL: _denormal,
    "ties": _ties,
    "equal": _equal,
    "scaled_rows": _scaled_rows,
    NAN: _planted(np.nan),
    INFINITE: _planted(-np.inf),
    POSITIVE: _planted(np.inf),
}
_POSITIONS: Mapping[str, _Change] = {
    "ends": _placed(_ends),
    "repeated": _placed(_repeated),
    "ascending": _placed(_ascending),
}
_WHOLE: Mapping[str, _Change] = {"whole": _whole}
_ALL = {**_FLOATS, **_POSITIONS, **_WHOLE}
