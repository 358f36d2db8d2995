"""The curve of the best time so far: the positions of all marks in the drawing."""

from __future__ import annotations

from dataclasses import dataclass

from search.core import quantity
from search.report.page import EvaluationRow, RunReport
from search.report.scale import Scale, scale_for, spread

LABEL_GAP = 17
SLOWEST = 2.0  # slower times than SLOWEST times the slowest level are drawn at the upper edge


@dataclass(frozen=True, slots=True)
class Sheet:
    """The size and margins of a drawing."""

    width: int
    height: int
    # Margins.
    left: int
    right: int
    top: int
    bottom: int
    marks: int  # largest number of marks along the evaluations


WIDE = Sheet(width=860, height=330, left=62, right=176, top=14, bottom=62, marks=8)
# For a phone: there is no space for labels next to the lines, so a legend is below the drawing.
NARROW = Sheet(width=360, height=300, left=52, right=10, top=14, bottom=62, marks=5)


@dataclass(frozen=True, slots=True)
class Mark:
    """A number at an axis."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class CurveLevel:
    """A horizontal line with its label."""

    name: str  # plain, first, best or roofline
    text: str
    y: float
    label_y: float


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """One evaluation."""

    x: float
    y: float
    hint: str  # tooltip
    gain: bool = False
    beyond: bool = False  # slower than the drawn range


@dataclass(frozen=True, slots=True)
class Curve:
    """A drawing. path, area: the best time so far, as SVG path data."""

    width: int
    height: int
    left: int
    right: float
    bottom: float
    path: str
    area: str
    across: tuple[Mark, ...]
    upward: tuple[Mark, ...]
    levels: tuple[CurveLevel, ...]
    dots: tuple[CurvePoint, ...]
    failures: tuple[CurvePoint, ...]
    failures_y: float

    @property
    def beyond(self) -> bool:
        """Whether any dot is slower than the drawn range."""
        return any(dot.beyond for dot in self.dots)


LEVELS = (
    ("plain", "plain schedule"),
    ("first", "first schedule"),
    ("best", "best"),
    ("roofline", "roofline"),
)


def curve(result: RunReport, sheet: Sheet = WIDE) -> Curve | None:
    """The drawing for a result; None if no trial was correct."""
    known = [t.us for t in result.trials if t.us is not None]
    if not known:
        return None
    levels = {name: getattr(result, f"{name}_us") for name, _ in LEVELS}
    bottom = sheet.height - sheet.bottom
    scale = _scale(known, [v for v in levels.values() if v], bottom, sheet.top)
    right = sheet.width - sheet.right
    across = _Across(result.trials, sheet.left, right)
    path = _path(result.trials, across, scale, right)
    return Curve(
        width=sheet.width,
        height=sheet.height,
        left=sheet.left,
        right=right,
        bottom=bottom,
        path=path,
        area=f"{path} V{bottom} H{_start(path)} Z",
        across=across.marks(sheet.marks),
        upward=tuple(Mark(round(scale(v), 1), quantity.mark(v)) for v in scale.marks()),
        levels=_levels(levels, scale),
        dots=_dots(result, across, scale),
        failures=_failures(result.trials, across, bottom),
        failures_y=bottom + 13,
    )


def _scale(times: list[float], levels: list[float], bottom: float, top: float) -> Scale:
    """A scale for all levels, and for all times except those far slower than the slowest level."""
    most = SLOWEST * max(levels) if levels else max(times)
    return scale_for([*levels, *(min(us, most) for us in times)], bottom, top)


class _Across:
    """The axis of evaluations."""

    def __init__(self, trials: tuple[EvaluationRow, ...], left: float, right: float):
        self.count = max(1, max(t.number for t in trials))
        self.left, self.right = left + 8, right - 8

    def __call__(self, number: int) -> float:
        return round(self.left + (self.right - self.left) * number / self.count, 1)

    def marks(self, most: int) -> tuple[Mark, ...]:
        step = next(
            s * 10**d for d in range(9) for s in (1, 2, 5) if self.count / (s * 10**d) < most
        )
        return tuple(Mark(self(n), str(n)) for n in range(0, self.count + 1, step))


def _path(trials: tuple[EvaluationRow, ...], across: _Across, scale: Scale, right: float) -> str:
    best: float | None = None
    parts: list[str] = []
    for t in trials:
        if t.us is None or (best is not None and t.us >= best):
            continue
        best = t.us
        x, y = across(t.number), round(scale(t.us), 1)
        parts.append(f"H{x} V{y}" if parts else f"M{x} {y}")
    return " ".join([*parts, f"H{right}"])


def _start(path: str) -> str:
    return path[1:].split(" ", 1)[0]


def _levels(values: dict[str, float | None], scale: Scale) -> tuple[CurveLevel, ...]:
    known = [(name, words, us) for name, words in LEVELS if (us := values[name])]
    labels = spread([scale(v) for _, _, v in known], LABEL_GAP)
    return tuple(
        CurveLevel(name, f"{words} {quantity.time(v)}", round(scale(v), 1), round(y + 4, 1))
        for (name, words, v), y in zip(known, labels)
    )


def _dots(result: RunReport, across: _Across, scale: Scale) -> tuple[CurvePoint, ...]:
    best = float("inf")
    dots = []
    for t in result.trials:
        if t.us is None:
            continue
        hint = f"#{t.number}, {t.operator}: {quantity.time(t.us)} {result.time_kind}".rstrip()
        y = round(scale(t.us), 1)
        dots.append(CurvePoint(across(t.number), y, hint, t.us < best, t.us > scale.high))
        best = min(best, t.us)
    return tuple(dots)


def _failures(
    trials: tuple[EvaluationRow, ...], across: _Across, bottom: float
) -> tuple[CurvePoint, ...]:
    return tuple(
        CurvePoint(
            across(t.number), bottom + 13, f"#{t.number}, {t.operator}: {t.stage}: {t.reason}"
        )
        for t in trials
        if t.us is None
    )
