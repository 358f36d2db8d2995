"""Folds: the reductions and scans that Triton has, by the language's names."""

from __future__ import annotations

from dataclasses import dataclass

from ir.spec import FLOATS


@dataclass(frozen=True, slots=True)
class FoldText:
    """How a fold is written. over: of a tensor along an axis.  onto: of two values.  scan: the
    running fold along an axis."""

    over: str
    onto: str
    scan: str = ""


FOLDS = {
    "sum": FoldText("tl.sum({0}, {1})", "{0} + {1}", "tl.cumsum({0}, {1})"),
    "max": FoldText(
        "tl.max({0}, {1})", "tl.maximum({0}, {1})", "tl.associative_scan({0}, {1}, larger)"
    ),
    "min": FoldText(
        "tl.min({0}, {1})", "tl.minimum({0}, {1})", "tl.associative_scan({0}, {1}, smaller)"
    ),
    "prod": FoldText("tl.reduce({0}, {1}, multiply)", "{0} * {1}", "tl.cumprod({0}, {1})"),
    "any": FoldText("tl.max({0}, {1})", "{0} | {1}"),
    "all": FoldText("tl.min({0}, {1})", "{0} & {1}"),
}
_ON_FLOATS = {  # Triton's own maximum and minimum leave NaN out
    "max": FoldText("tl.reduce({0}, {1}, larger)", "larger({0}, {1})", FOLDS["max"].scan),
    "min": FoldText("tl.reduce({0}, {1}, smaller)", "smaller({0}, {1})", FOLDS["min"].scan),
}


def fold_text(fold: str, dtype: str, nan: bool = True) -> FoldText:
    """How a fold of values of a dtype is written. nan: whether it gives NaN where a value is."""
    return _ON_FLOATS.get(fold, FOLDS[fold]) if nan and dtype in FLOATS else FOLDS[fold]
