"""Tolerances: how far a result may be from float64's.

The rule: a candidate's root mean square error against a float64 evaluation is at most twice
(arithmetic in f32 or wider) or three times (16-bit) that of a plain evaluation in the same
precision, plus a floor. It scales with the kernel: a long sum or a steep function loosens the
gate as much as it harms plain arithmetic, and a kernel in a coarser format than its spec's
fails. The floor allows what plain arithmetic does not do: approximate elementary functions
(2 to 4 units in the last place in vendors' tables, for f32) and another order of summation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

# Spacing of the numbers of a format just above 1: 2 ** (1 - bits of the significand).
EPSILON = {
    "f64": 2.0**-52,
    "f32": 2.0**-23,
    "tf32": 2.0**-10,
    "f16": 2.0**-10,
    "bf16": 2.0**-7,
    "f8e4m3": 2.0**-3,
    "f8e5m2": 2.0**-2,
}
LARGEST = {
    "f64": 1.7976931348623157e308,
    "f32": 3.4028235e38,
    "tf32": 3.4011621e38,
    "f16": 65504.0,
    "bf16": 3.3895314e38,
    "f8e4m3": 448.0,
    "f8e5m2": 57344.0,
}
# The least normal number where units may flush smaller ones, else the least number.
LEAST = {
    "f64": 2.0**-1074,
    "f32": 2.0**-126,
    "tf32": 2.0**-126,
    "f16": 2.0**-24,
    "bf16": 2.0**-126,
    "f8e4m3": 2.0**-9,
    "f8e5m2": 2.0**-16,
}
FINITE = ("f8e4m3",)  # dtypes without infinities: what is beyond the largest number becomes it
FACTOR = {"f64": 2.0, "f32": 2.0, "f16": 3.0, "bf16": 3.0}
# Outputs of 8 bits are results in 16 rounded once more, and those of tf32 in f32: a tie that falls to the other
# side costs a unit, but few do, so a quarter of a unit in the root mean square is ample.
FLOOR_ULPS = {
    "f64": 4.0,
    "f32": 4.0,
    "f16": 1.0,
    "bf16": 1.0,
    "tf32": 0.25,
    "f8e4m3": 0.25,
    "f8e5m2": 0.25,
}
# One element may err by so many times the tolerated root mean square error, and a few units
# of its own last place: 0.0006% of normally distributed errors would lie outside 4.5. Where the
# errors of plain arithmetic are spread wider, as where a few rows are divided by almost nothing,
# by as many times as its worst is.
SPREAD = 4.5
FEW = 32  # elements of which a root mean square says no more than one of them does
# Of the floor: what a common factor may be off, beside what plain arithmetic is. Splitting f32 for
# units that truncate takes some of the last place of every product.
BIAS = {
    "f64": 1.0,
    "f32": 1.0,
    "f16": 0.25,
    "bf16": 0.25,
    "tf32": 0.25,
    "f8e4m3": 0.25,
    "f8e5m2": 0.25,
}
# Quantiles of the errors of rows, each with how many times the limit is allowed there.
QUANTILES = ((0.5, 1.0), (0.9, 1.5), (1.0, SPREAD))
SAMPLE = 1 << 16  # elements of which equal ones are counted
LEAST_SCALE, MOST_SCALE = 1e-250, 1e250  # of sums of squares that neither vanish nor overflow


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Limits for one output."""

    rmse: float  # of all elements together
    element: float  # added, for one element, to `relative` times its magnitude
    relative: float


def tolerance(
    dtype: str, precision: str, exact: np.ndarray, storage: np.ndarray, times: float = 1.0
) -> Tolerance:
    """Limits for an output of a dtype.

    precision: the narrowest float of the spec.  exact, storage: what float64 and plain
    arithmetic in the spec's formats give, finite, of any one shape.  times: what is allowed, in
    limits of one kernel.
    """
    factor = times * FACTOR[precision]
    unit = times * FLOOR_ULPS[dtype] * EPSILON[dtype]
    error = storage - exact
    rmse = factor * rms(error) + unit * rms(exact)
    worst = float(np.max(np.abs(error), initial=0.0))
    return Tolerance(rmse, rmse * spread(rms(error), worst), unit)


def spread(rmse: float, worst: float) -> float:
    """How many times the tolerated root mean square error one element may err. rmse, worst: the
    root mean square and the largest of plain arithmetic's errors."""
    return max(SPREAD, worst / rmse) if rmse else SPREAD


def spacing(dtype: str) -> float:
    """Of the least numbers of a format: units may take those below the normal ones for 0, but for
    f16 and 8 bits, which are converted."""
    return LEAST[dtype]


@dataclass(frozen=True, slots=True)
class Allowance:
    """What an output may be off as a whole though its elements are not. All of it follows from the reference, so
    that it is made once for all candidates."""

    top: float  # of the largest element
    square: float  # of the norm of the elements over `top`
    factor: float  # how far a common factor may be from 1; infinite where it is not looked at
    sizes: np.ndarray  # root mean square of each row; none where rows are not looked at
    some: np.ndarray  # of which rows that is large enough to say something
    rows: tuple[tuple[float, float], ...]  # share of these, and the relative error at that quantile

    @staticmethod
    def of(
        dtype: str,
        precision: str,
        exact: np.ndarray,
        errors: Sequence[np.ndarray],
        times: float = 1.0,
    ) -> Allowance:
        """dtype, precision, times: as in `tolerance`.  exact: finite float64.  errors: of runs of plain
        arithmetic."""
        unit = times * FLOOR_ULPS[dtype] * EPSILON[dtype]
        factor = times * FACTOR[precision]
        common = _common(BIAS[dtype] * unit, unit, factor, exact, errors)
        rows = _rows(spacing(dtype) / EPSILON[dtype], unit, factor, exact, errors)
        return Allowance(*common, *rows)

    def faults(self, off: np.ndarray, exact: np.ndarray) -> Iterator[str]:
        """Why an output is off, in words; nothing where it is not. off: its errors, signed."""
        if self.factor < np.inf:
            found = _factor(off, exact, self.top, self.square)
            if abs(found) > self.factor:
                yield (
                    f"is {1 + found:.6f} times what is right, in the mean of its elements; "
                    f"a factor within {self.factor:.2g} of 1 is allowed"
                )
        if not self.rows:
            return
        relative = _row_rms(off)[self.some] / self.sizes[self.some]
        for share, most in self.rows:
            found = float(np.quantile(relative, share))
            if found > most:
                yield (
                    f"has rows whose root mean square error is {found:.3g} of their size at the "
                    f"{share:.0%} quantile; {most:.3g} is allowed"
                )


def allowance(
    dtype: str,
    precision: str,
    got: np.ndarray,
    exact: np.ndarray,
    errors: Sequence[np.ndarray],
    times: float = 1.0,
) -> Iterator[str]:
    """Why an output is off as a whole though its elements are not: as of `Allowance`, at once. got: finite float64."""
    if got.size >= FEW:
        yield from Allowance.of(dtype, precision, exact, errors, times).faults(got - exact, exact)


def _common(
    floor: float,
    unit: float,
    times: float,
    exact: np.ndarray,
    errors: Sequence[np.ndarray],
) -> tuple[float, float, float]:
    """Of a common factor: `Allowance.top`, `square` and `factor`. Independent errors of n elements average out
    to 1/sqrt(n)."""
    top = float(np.max(np.abs(exact), initial=0.0))
    if top == 0 or not np.isfinite(top):
        return top, 0.0, np.inf
    scaled = (exact / top).ravel()
    square = _dot(scaled, scaled)
    # How many elements the factor is of: those that are small, or equal others, say nothing new.
    fourth = _dot(np.square(scaled), np.square(scaled))
    count = min(square**2 / fourth, _distinct(scaled))
    relative = times * max(rms(e) for e in errors) / top / rms(scaled) + unit
    plain = max(abs(_factor(e, exact, top, square)) for e in errors)
    return top, square, times * plain + floor + SPREAD * relative / float(np.sqrt(count))


def _factor(error: np.ndarray, exact: np.ndarray, top: float, square: float) -> float:
    """Of which common factor an error is: its projection on what is right."""
    scaled = (exact / top).ravel()
    if LEAST_SCALE < top < MOST_SCALE:
        return _dot(error.ravel(), scaled) / top / square
    return _dot((error / top).ravel(), scaled) / square


def _distinct(values: np.ndarray) -> int:
    some = values[:: max(1, values.size // SAMPLE)]
    return len(np.unique(some)) * values.size // some.size


def _rows(
    least: float, unit: float, times: float, exact: np.ndarray, errors: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray, tuple[tuple[float, float], ...]]:
    """Of rows, along the last axis, that are less exact than the rows of plain arithmetic are: `Allowance.sizes`,
    `some` and `rows`. By quantiles, so that small rows beside large ones count."""
    if exact.ndim < 2 or exact.shape[-1] < FEW:
        return np.zeros(0), np.zeros(0, bool), ()
    size = _row_rms(exact)
    some = size > least
    if not some.any():
        return size, some, ()
    plain = np.max([_row_rms(e)[some] / size[some] for e in errors], axis=0)
    quantiles = [(share, float(np.quantile(plain, share)), more) for share, more in QUANTILES]
    return size, some, tuple((share, more * (times * at + unit)) for share, at, more in quantiles)


def _row_rms(values: np.ndarray) -> np.ndarray:
    rows = values.reshape(-1, values.shape[-1])
    with np.errstate(over="ignore"):
        squares = np.einsum("ij,ij->i", rows, rows)
    found = np.sqrt(squares / rows.shape[1])
    odd = ~((squares > LEAST_SCALE) & (squares < MOST_SCALE))
    if odd.any():
        found[odd] = _scaled_row_rms(rows[odd])
    return found


def _scaled_row_rms(rows: np.ndarray) -> np.ndarray:
    top = np.max(np.abs(rows), axis=1, initial=0.0)
    safe = np.where(top > 0, top, 1.0)
    return np.asarray(top * np.sqrt(np.mean(np.square(rows / safe[:, None]), axis=1)))


def rms(values: np.ndarray) -> float:
    """Root mean square, scaled where large values would overflow or small ones vanish; 0 of nothing."""
    flat = values.ravel()
    with np.errstate(over="ignore"):
        square = _dot(flat, flat)
    if LEAST_SCALE < square < MOST_SCALE:
        return float(np.sqrt(square / flat.size))
    top = float(np.max(np.abs(flat), initial=0.0))
    if top == 0 or not np.isfinite(top):
        return top
    return top * float(np.sqrt(np.mean(np.square(flat / top))))


def _dot(one: np.ndarray, other: np.ndarray) -> float:
    """The scalar product of vectors. Not by BLAS, whose threads wait for each other where candidates are
    compared with each other."""
    return float(np.einsum("i,i->", one, other))


def norm_ratio(error: np.ndarray, of: np.ndarray) -> float:
    """The 2-norm of an error over that of a result: 0 where both vanish, else infinite where
    the result does."""
    return ratio(rms(error), rms(of))


def ratio(over: float, under: float) -> float:
    """As `norm_ratio`, of root mean squares."""
    if under:
        return over / under
    return float("inf") if over else 0.0
