"""Tables that fit the width of a terminal, and the summary of runs as text and plain data."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ir.guards import WITHIN
from search.core import provenance, quantity
from search.core.by_backend import by_backend
from search.core.contributions import contributions
from search.core.evaluation import Evaluated, Failure
from search.core.held_out import HeldOut, gain, held_out_words
from search.core.outcome import AtShape, Outcome
from search.core.shape_dispatch import ShapeDispatch, guard_lines
from search.record.specialization import Texts

GAP = "  "
LEAST = 24  # least number of characters of a last column that is wrapped
INDENT = "    "
_KEPT = "\N{NO-BREAK SPACE}"


def columns(rows: Sequence[Sequence[str]], aligns: Sequence[str], width: int | None = None) -> str:
    """A table of rows; the first row, of titles, is underlined.

    width: largest number of characters of a line; None: any. A wider table wraps its last column.
    If that is not enough, each row becomes a paragraph of titles and cells.
    """
    widths = [max(len(row[i]) for row in rows) for i in range(len(aligns))]
    before = sum(widths[:-1]) + len(GAP) * (len(widths) - 1)
    if width is not None and before + widths[-1] > width:
        if width - before < LEAST or aligns[-1] != "<":
            return _paragraphs(rows, width)
        widths[-1] = width - before
    ruled = [rows[0], tuple("-" * width for width in widths), *rows[1:]]
    return "".join(_row(row, aligns, widths) for row in ruled)


def filled(text: str, width: int | None = None) -> str:
    """A sentence, wrapped into lines; further lines are indented."""
    if width is None:
        return f"{text}\n"
    return "\n".join(_wrapped(text, width, GAP)) + "\n"


def _row(row: Sequence[str], aligns: Sequence[str], widths: Sequence[int]) -> str:
    """A row, with its last cell wrapped."""
    lasts = _wrapped(row[-1], widths[-1]) or [""]
    firsts = [f"{cell:{a}{w}}" for cell, a, w in zip(row[:-1], aligns, widths)]
    empty = [" " * w for w in widths[:-1]]
    lines = [
        GAP.join([*(empty if number else firsts), f"{last:{aligns[-1]}{widths[-1]}}"])
        for number, last in enumerate(lasts)
    ]
    return "".join(line.rstrip() + "\n" for line in lines)


def _paragraphs(rows: Sequence[Sequence[str]], width: int) -> str:
    """Each row as its first cell, followed by the others after their titles. A cell and its title
    stay together if they fit on a line."""
    text = ""
    for row in rows[1:]:
        cells = [f"{title} {cell}".strip() for title, cell in zip(rows[0][1:], row[1:])]
        room = width - len(INDENT) - 1
        kept = [c.replace(" ", _KEPT) if len(c) <= min(room, 2 * LEAST) else c for c in cells]
        lines = _wrapped(", ".join(kept), width, INDENT, INDENT)
        text += "\n".join([*_wrapped(row[0], width), *lines]) + "\n"
    return text


def _wrapped(text: str, width: int, more: str = "", first: str = "") -> list[str]:
    lines = textwrap.wrap(
        text, width, initial_indent=first, subsequent_indent=more, break_on_hyphens=False
    )
    return [line.replace(_KEPT, " ") for line in lines]


COLUMNS = (
    ("kernel", "<"),
    ("target", "<"),
    ("first", ">"),
    ("best", ">"),
    ("over first", ">"),
    ("over plain", ">"),
    ("roofline", ">"),
    ("correct by", "<"),
    ("time", "<"),
    ("stopped because", "<"),
)


@dataclass(frozen=True, slots=True)
class SummaryLine:
    """One run of the suite."""

    outcome: Outcome
    record: str = ""  # folder of the winner in the checkout; empty if it was not written
    # the backend's description of this machine
    here: Mapping[str, str] = field(default_factory=dict)
    held_out: tuple[HeldOut, ...] = ()
    out: str = ""  # user's folder of the winner; empty if it was not written

    def table(self, texts: Sequence[Texts] = ()) -> dict[str, Any]:
        """The run as plain data. Times are in microseconds; None if unknown.

        `models` is present if models were asked, `left_to_torch` if PyTorch computes some of the
        kernel's module. texts: of the winner and of the kernels that share its shapes.
        """
        outcome, best = self.outcome, self.outcome.evaluation
        settings = outcome.settings
        made = contributions(outcome.graph, outcome.outcomes)
        models = {"models": outcome.models.table()} if outcome.models else {}
        left = {"left_to_torch": list(settings.left_to_torch)} if settings.left_to_torch else {}
        return {
            "run": outcome.run,
            "kernel": settings.kernel,
            "target": settings.target,
            "backend": outcome.best.backend if outcome.best else None,
            "backends": [each.table() for each in by_backend(outcome)],
            "shape": dict(settings.sizes),
            "evaluations": outcome.evaluations,
            "failures": dict(outcome.failures),
            "slow": outcome.slow,
            "failed": list(_failed(outcome.outcomes)),
            "correct_by": best.correct_by if best else None,
            "time_kind": best.time_kind if best else None,
            "device": self.here.get("device"),
            "toolchain": self.here.get("toolchain"),
            "first_us": outcome.first_us,
            "best_us": best.us if best else None,
            "plain_us": outcome.plain_us,
            "roofline_us": outcome.roofline_us,
            "stopped_because": outcome.stopped_because,
            "record": self.record or None,
            "out": self.out or None,
            **_texts(texts[0] if texts else None),
            "shapes": [_at_shape(row) for row in outcome.by_shape()],
            "dispatch": _dispatch(outcome.dispatch, texts) if outcome.dispatch else None,
            "held_out": _held_out(self.held_out) if self.held_out else None,
            "operators": [asdict(each) for each in made],
            **models,
            **left,
        }

    def obtained(self) -> str:
        """How the results of this row were obtained; empty if none is correct."""
        best, target = self.outcome.evaluation, self.outcome.settings.target
        if best is None:
            return ""
        return provenance.sentence(self.here, best.correct_by, best.time_kind, target)

    def cells(self) -> tuple[str, ...]:
        """The cells of the row, in the order of COLUMNS."""
        outcome, best = self.outcome, self.outcome.evaluation
        us = best.us if best else None
        return (
            outcome.settings.kernel,
            outcome.settings.target,
            quantity.time(outcome.first_us),
            quantity.time(us),
            quantity.factor(quantity.ratio(outcome.first_us, us)),
            quantity.factor(quantity.ratio(outcome.plain_us, us)),
            quantity.share(quantity.ratio(outcome.roofline_us, us)),
            best.correct_by if best else "none correct",
            best.time_kind if best else quantity.NONE,
            outcome.stopped_because,
        )


def _at_shape(row: AtShape) -> dict[str, Any]:
    found = {"sizes": dict(row.shape.sizes), "weight": row.shape.weight}
    for name in ("first_us", "single_us", "us", "kernel", "roofline_us"):
        found[name] = getattr(row, name)
    return found


def _texts(texts: Texts | None) -> dict[str, Any]:
    """A kernel's texts; its equations only if they are not the spec's own."""
    names = ("schedule", "source", "variant")
    return {name: getattr(texts, name) if texts else None for name in names}


def _dispatch(found: ShapeDispatch, texts: Sequence[Texts]) -> dict[str, Any]:
    """The kernels by number; the first is the fallback."""
    each: Sequence[Texts | None] = texts or [None] * len(found.kernels)
    return {
        "us": found.us,
        "single_us": found.single_us,
        "guards": [{"near": dict(g.near), "kernel": g.kernel} for g in found.guards],
        "within": WITHIN,
        "kernels": [
            {"key": kernel.candidate.key, "us": list(kernel.times), **_texts(one)}
            for kernel, one in zip(found.kernels, each, strict=True)
        ],
    }


def _failed(outcomes: Mapping[str, Evaluated]) -> Iterator[dict[str, Any]]:
    """Each failed candidate with the whole reason; `number` is its number in the log."""
    for number, found in enumerate(outcomes.values()):
        if isinstance(found, Failure) and not found.slow:
            yield {
                "number": number,
                "stage": found.stage,
                "kind": found.kind,
                "reason": found.reason,
            }


def _held_out(rows: Sequence[HeldOut]) -> dict[str, Any]:
    return {
        "correct": sum(not row.fault for row in rows),
        "over_single": gain(rows, "single_us"),
        "over_first": gain(rows, "first_us"),
        "of_least": gain(rows, "least_us"),
        "shapes": [asdict(row) | {"fault": row.fault or None} for row in rows],
    }


def held_out_text(rows: Sequence[HeldOut], width: int | None = None) -> str:
    """A table of the results at held-out shapes; empty if there are none."""
    if not rows:
        return ""
    cells: list[Sequence[str]] = [("shape", "kernel", "shared", "best", "autoschedule", "")]
    for row in rows:
        times = (quantity.time(us) for us in (row.us, row.single_us, row.first_us))
        cells.append((quantity.shape(row.sizes), str(row.kernel), *times, row.said))
    text = "at shapes that it was not tuned for:\n" + columns(cells, "<>>>><", width)
    return text + filled(held_out_words(rows), width)


def backends_text(outcome: Outcome, width: int | None = None) -> str:
    """A table of the results of each backend; empty if there is only one."""
    if len(outcome.settings.backends) == 1:
        return ""
    titles = ("backend", "evaluated", "correct", "failed", "correct by", "first", "best")
    cells: list[Sequence[str]] = [(*titles, "best schedule, over the first")]
    for each in by_backend(outcome):
        cells.append(
            (
                each.backend,
                str(each.evaluated),
                str(each.correct),
                str(each.failed),
                each.evaluation.correct_by if each.evaluation else quantity.NONE,
                quantity.time(each.first_us),
                quantity.time(each.best_us),
                "; ".join(each.edits) or ("the same" if each.best else quantity.NONE),
            )
        )
    settings, best = outcome.settings, outcome.best
    won = f", won by {best.backend}" if best else ""
    head = f"{settings.kernel} on {settings.target}, by backend{won}:\n"
    return head + columns(cells, "<>>><>><", width)


def shapes_text(outcome: Outcome, width: int | None = None) -> str:
    """A table of the times at each shape, with the guards of the kernels; empty if there is only
    one shape."""
    rows = outcome.by_shape()
    if not rows:
        return ""
    shared = outcome.dispatch is not None
    titles = ["shape", "weight", "first", "best", *(["shared", "kernel"] if shared else [])]
    cells = [[*titles, "roofline"]]
    for row in rows:
        more = [quantity.time(row.us), str(row.kernel)] if shared else []
        cells.append(
            [
                quantity.shape(row.shape.sizes),
                f"{row.shape.weight:g}",
                quantity.time(row.first_us),
                quantity.time(row.single_us),
                *more,
                quantity.share(quantity.ratio(row.roofline_us, row.us)),
            ]
        )
    settings = outcome.settings
    head = f"{settings.kernel} on {settings.target}, at each shape:\n"
    text = head + columns(cells, "<" + ">" * (len(cells[0]) - 1), width)
    return text + "".join(filled(line, width) for line in guard_lines(outcome.dispatch))


def summary_text(lines: Sequence[SummaryLine], width: int | None = None) -> str:
    """The table with a row for each run, followed by notes: how results were obtained, the folders
    of winners, the use of models, and the number of sources with known outcomes.

    width: of the lines, in characters; None: any.
    """
    rows = [tuple(title for title, _ in COLUMNS), *(line.cells() for line in lines)]
    written = [
        f"{line.outcome.settings.kernel}: {folder}"
        for line in lines
        for folder in (line.record, line.out)
        if folder
    ]
    how = dict.fromkeys(said for line in lines if (said := line.obtained()))
    asked = [
        f"{line.outcome.settings.kernel} on {line.outcome.settings.target}, models: {used}"
        for line in lines
        if (used := line.outcome.models)
    ]
    same = [
        f"{line.outcome.settings.kernel} on {line.outcome.settings.target}: "
        f"{line.outcome.same_source} of {line.outcome.evaluations} candidates come to a source that "
        "was evaluated before, and have its outcome"
        for line in lines
        if line.outcome.same_source
    ]
    below = [*(f"{said[0].upper()}{said[1:]}." for said in how), *written, *asked, *same]
    table = columns(rows, [align for _, align in COLUMNS], width)
    text = table + "".join(filled(each, width) for each in below)
    more = [
        t
        for line in lines
        for t in (
            backends_text(line.outcome, width),
            shapes_text(line.outcome, width),
            held_out_text(line.held_out, width),
        )
        if t
    ]
    return text + "".join(f"\n{each}" for each in more)
