"""Tolerances: how far a result may be from float64's.

The rule: a candidate's root mean square error against a float64 evaluation is at most twice
(arithmetic in f32 or wider) or three times (16-bit) that of a plain evaluation in the same
precision, plus a floor. It scales with the kernel: a long sum or a steep function loosens the
gate as much as it harms plain arithmetic, and a kernel in a coarser format than its spec's
fails. The floor allows what plain arithmetic does not do: approximate elementary functions
(2 to 4 units in the last place in vendors' tables, for f32) and another order of summation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# Spacing of the numbers of a format just above 1: 2 ** (1 - bits of the significand).
EPSILON = {
    "f64": 2.0**-52,
    "f32": 2.0**-23,
    "f16": 2.0**-10,
    "bf16": 2.0**-7,
    "f8e4m3": 2.0**-3,
    "f8e5m2": 2.0**-2,
}
LARGEST = {
    "f64": 1.7976931348623157e308,
    "f32": 3.4028235e38,
    "f16": 65504.0,
    "bf16": 3.3895314e38,
    "f8e4m3": 448.0,
    "f8e5m2": 57344.0,
}
FINITE = ("f8e4m3",)  # dtypes without infinities: what is beyond the largest number becomes it
FACTOR = {"f64": 2.0, "f32": 2.0, "f16": 3.0, "bf16": 3.0}
# Outputs of 8 bits are results in 16 rounded once more: a tie that falls to the other side costs
# a unit, but few do, so a quarter of a unit in the root mean square is ample.
FLOOR_ULPS = {"f64": 4.0, "f32": 4.0, "f16": 1.0, "bf16": 1.0, "f8e4m3": 0.25, "f8e5m2": 0.25}
# One element may err by so many times the tolerated root mean square error, and a few units
# of its own last place: 0.0006% of normally distributed errors would lie outside 4.5. Where the
# errors of plain arithmetic are spread wider, as where a few rows are divided by almost nothing,
# by as many times as its worst is.
SPREAD = 4.5


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Limits for one output."""

    rmse: float  # of all elements together
    element: float  # added, for one element, to `relative` times its magnitude
    relative: float


def tolerance(dtype: str, precision: str, exact: np.ndarray, storage: np.ndarray) -> Tolerance:
    """Limits for an output of a dtype.

    precision: the narrowest float of the spec.  exact, storage: what float64 and plain
    arithmetic in the spec's formats give, finite, of any one shape.
    """
    factor = FACTOR[precision]
    unit = FLOOR_ULPS[dtype] * EPSILON[dtype]
    error = storage - exact
    rmse = factor * rms(error) + unit * rms(exact)
    worst = float(np.max(np.abs(error), initial=0.0))
    return Tolerance(rmse, rmse * spread(rms(error), worst), unit)


def spread(rmse: float, worst: float) -> float:
    """How many times the tolerated root mean square error one element may err. rmse, worst: the
    root mean square and the largest of plain arithmetic's errors."""
    return max(SPREAD, worst / rmse) if rmse else SPREAD


def rms(values: np.ndarray) -> float:
    """Root mean square, scaled so that large values do not overflow; 0 of nothing."""
    top = float(np.max(np.abs(values), initial=0.0))
    if top == 0 or not np.isfinite(top):
        return top
    return top * float(np.sqrt(np.mean(np.square(values / top))))


def norm_ratio(error: np.ndarray, of: np.ndarray) -> float:
    """The 2-norm of an error over that of a result: 0 where both vanish, else infinite where
    the result does."""
    over, under = rms(error), rms(of)
    if under:
        return over / under
    return float("inf") if over else 0.0
