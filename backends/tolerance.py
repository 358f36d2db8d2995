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

# Spacing of a dtype's numbers just above 1: 2 ** (1 - bits of the significand).
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
# The least normal number for dtypes whose subnormals devices may flush, else the least number.
LEAST = {
    "f64": 2.0**-1074,
    "f32": 2.0**-126,
    "tf32": 2.0**-126,
    "f16": 2.0**-24,
    "bf16": 2.0**-126,
    "f8e4m3": 2.0**-9,
    "f8e5m2": 2.0**-16,
}
FINITE = ("f8e4m3",)  # dtypes without infinities: values out of range saturate
FACTOR = {"f64": 2.0, "f32": 2.0, "f16": 3.0, "bf16": 3.0}
# 8-bit outputs are 16-bit results that are rounded again, and tf32 outputs are rounded from f32. A
# tie that rounds the other way costs one unit, but few do, so a root mean square of a quarter of a
# unit is ample.
FLOOR_ULPS = {
    "f64": 4.0,
    "f32": 4.0,
    "f16": 1.0,
    "bf16": 1.0,
    "tf32": 0.25,
    "f8e4m3": 0.25,
    "f8e5m2": 0.25,
}
# The error of one element may be this many times the tolerated root mean square error, plus a few
# units in its own last place: 0.0006% of normally distributed errors would exceed 4.5. If the
# errors of plain arithmetic have a wider distribution, for example because a few rows are divided
# by almost nothing, the worst error of plain arithmetic sets the factor.
SPREAD = 4.5
FEW = 32  # up to which number of elements a root mean square says no more than one of them
# The share of the floor that a common factor may be off, beyond the error of plain arithmetic.
# Splitting f32 for matrix units that truncate loses some of the last place of every product.
BIAS = {
    "f64": 1.0,
    "f32": 1.0,
    "f16": 0.25,
    "bf16": 0.25,
    "tf32": 0.25,
    "f8e4m3": 0.25,
    "f8e5m2": 0.25,
}
# Quantiles of the errors of rows, each with the multiple of the limit that is allowed there.
QUANTILES = ((0.5, 1.0), (0.9, 1.5), (1.0, SPREAD))
SAMPLE = 1 << 16  # elements among which equal ones are counted
# Range in which sums of squares neither underflow nor overflow
LEAST_SCALE, MOST_SCALE = 1e-250, 1e250


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Limits for one output."""

    rmse: float  # root mean square over all elements
    element: float  # the limit of one element: this plus `relative` times its magnitude
    relative: float


def tolerance(
    dtype: str, precision: str, exact: np.ndarray, storage: np.ndarray, times: float = 1.0
) -> Tolerance:
    """The limits for an output of a dtype.

    precision: the narrowest float of the spec.
    exact, storage: the results of float64, and of plain arithmetic in the spec's dtypes; finite, of
    the same shape.
    times: scales the limits; 1 is for one kernel.
    """
    factor = times * FACTOR[precision]
    unit = times * FLOOR_ULPS[dtype] * EPSILON[dtype]
    error = storage - exact
    rmse = factor * rms(error) + unit * rms(exact)
    worst = float(np.max(np.abs(error), initial=0.0))
    return Tolerance(rmse, rmse * spread(rms(error), worst), unit)


def spread(rmse: float, worst: float) -> float:
    """The factor between the limit of one element and the tolerated root mean square error. rmse,
    worst: the root mean square and the largest of plain arithmetic's errors."""
    return max(SPREAD, worst / rmse) if rmse else SPREAD


def spacing(dtype: str) -> float:
    """The least number of a dtype that devices represent: they may flush subnormals to 0, except
    those of f16 and of 8-bit floats, which are converted."""
    return LEAST[dtype]


@dataclass(frozen=True, slots=True)
class Allowance:
    """Limits on errors of an output as a whole, which limits of its elements do not catch. They
    follow from the reference, so they are computed once for all candidates."""

    top: float  # magnitude of the largest element
    square: float  # sum of the squares of the elements over `top`
    factor: float  # how far a common factor may be from 1; infinite if it is not checked
    sizes: np.ndarray  # root mean square of each row; empty if rows are not checked
    some: np.ndarray  # which of these are large enough to check
    # Quantiles of the checked rows' relative errors: share, limit
    rows: tuple[tuple[float, float], ...]

    @staticmethod
    def of(
        dtype: str,
        precision: str,
        exact: np.ndarray,
        errors: Sequence[np.ndarray],
        times: float = 1.0,
    ) -> Allowance:
        """Computes the limits. dtype, precision, times: as in `tolerance`. exact: finite float64.
        errors: those of runs of plain arithmetic."""
        unit = times * FLOOR_ULPS[dtype] * EPSILON[dtype]
        factor = times * FACTOR[precision]
        common = _common(BIAS[dtype] * unit, unit, factor, exact, errors)
        rows = _rows(spacing(dtype) / EPSILON[dtype], unit, factor, exact, errors)
        return Allowance(*common, *rows)

    def faults(self, off: np.ndarray, exact: np.ndarray) -> Iterator[str]:
        """Why an output is wrong as a whole, in words; empty if it is not. off: its errors, signed."""
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
    """Why an output is wrong as a whole although its elements are not; computes the `Allowance`
    too. got: finite float64."""
    if got.size >= FEW:
        yield from Allowance.of(dtype, precision, exact, errors, times).faults(got - exact, exact)


def _common(
    floor: float,
    unit: float,
    times: float,
    exact: np.ndarray,
    errors: Sequence[np.ndarray],
) -> tuple[float, float, float]:
    """The limit on a common factor: `Allowance.top`, `square` and `factor`. Independent errors of n
    elements average to 1/sqrt(n)."""
    top = float(np.max(np.abs(exact), initial=0.0))
    if top == 0 or not np.isfinite(top):
        return top, 0.0, np.inf
    scaled = (exact / top).ravel()
    square = _dot(scaled, scaled)
    # The effective number of elements: small ones, and copies of others, add no information.
    fourth = _dot(np.square(scaled), np.square(scaled))
    count = min(square**2 / fourth, _distinct(scaled))
    relative = times * max(rms(e) for e in errors) / top / rms(scaled) + unit
    plain = max(abs(_factor(e, exact, top, square)) for e in errors)
    return top, square, times * plain + floor + SPREAD * relative / float(np.sqrt(count))


def _factor(error: np.ndarray, exact: np.ndarray, top: float, square: float) -> float:
    """The common factor in an error: its projection on the exact result."""
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
    """The limits on rows along the last axis, from the rows of plain arithmetic: `Allowance.sizes`,
    `some` and `rows`. They are quantiles, so that small rows count as much as large ones."""
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
    """Root mean square, scaled so that large values do not overflow and small ones do not underflow; 0 of nothing."""
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
    """The scalar product of vectors. It avoids BLAS, whose threads wait for each other when several
    candidates are compared at the same time."""
    return float(np.einsum("i,i->", one, other))


def norm_ratio(error: np.ndarray, of: np.ndarray) -> float:
    """The 2-norm of an error over that of a result: 0 if both are 0; infinite if only the result is."""
    return ratio(rms(error), rms(of))


def ratio(over: float, under: float) -> float:
    """The same as `norm_ratio`, of root mean squares."""
    if under:
        return over / under
    return float("inf") if over else 0.0
