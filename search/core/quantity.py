"""Formats quantities for a person: times, factors, shares, shapes."""

from __future__ import annotations

import math
from collections.abc import Mapping

NONE = "-"
FIXED = "fixed sizes"
TIMES = "\N{MULTIPLICATION SIGN}"
MICRO = "\N{MICRO SIGN}"


def positive(value: float) -> bool:
    """Whether a number is positive and finite."""
    return 0 < value < math.inf


def rounded(value: float, digits: int = 3) -> str:
    """`value` with `digits` significant digits and without an exponent: 0.0123, 1.23, 12.3,
    1,234."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{decimals}f}"


def time(us: float | None) -> str:
    """Microseconds in a suitable unit: `850 ns`, `12.3 us`, `1.23 ms`, `2.50 s`."""
    if us is None:
        return NONE
    value, unit = _in_unit(us)
    return f"{rounded(value)} {unit}"


def mark(us: float) -> str:
    """The same as `time`, with up to four digits and no trailing zeros: `50 us` at an axis, `41.05
    us`."""
    value, unit = _in_unit(us)
    return f"{value:.4g} {unit}"


def _in_unit(us: float) -> tuple[float, str]:
    if us < 1:
        return us * 1e3, "ns"
    if us < 1e3:
        return us, f"{MICRO}s"
    return (us / 1e3, "ms") if us < 1e6 else (us / 1e6, "s")


def factor(value: float | None) -> str:
    """A factor: `3.42x`."""
    return NONE if value is None else f"{rounded(value)}{TIMES}"


def share(value: float | None) -> str:
    """A share as a percentage: `82%`, `4.2%`, `0.044%`."""
    if value is None:
        return NONE
    return f"{rounded(100 * value, 2)}%" if 0 < value < 0.1 else f"{value:.0%}"


def duration(seconds: float) -> str:
    """A duration in seconds: `42 s`, `3 min 07 s`."""
    whole = int(seconds)
    return f"{whole // 60} min {whole % 60:02d} s" if whole >= 60 else f"{seconds:.0f} s"


def count(number: int, noun: str) -> str:
    """A count with its noun: `1 evaluation`, `3 evaluations`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def shape(sizes: Mapping[str, int]) -> str:
    """Sizes by name: `M=512, N=256`; `fixed sizes` if a spec has no free sizes."""
    return ", ".join(f"{name}={size}" for name, size in sizes.items()) or FIXED


def ratio(over: float | None, under: float | None) -> float | None:
    """over / under; None if either is unknown or 0."""
    return over / under if over is not None and under else None
