"""Renders a page as one self-contained HTML text, without network access or other files."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_environment
from markupsafe import Markup

from search.core import quantity
from search.report import curve as drawing
from search.report import heatmap
from search.report.page import Engine, Page, RunReport

TEMPLATES = Path(__file__).parents[2] / "templates" / "report"
REASONS = 3  # shown for each stage


@dataclass(frozen=True, slots=True)
class Stage:
    """The failures of a stage."""

    name: str
    count: int
    part: float  # share of all failures
    reasons: tuple[tuple[str, int], ...]  # the most frequent, with counts
    others: int


@dataclass(frozen=True, slots=True)
class Section:
    """A result with its drawings. The template only formats it."""

    result: RunReport
    anchor: str
    curve: drawing.Curve | None
    narrow: drawing.Curve | None  # the curve for a narrow screen
    maps: tuple[heatmap.HeatMap, ...]
    stages: tuple[Stage, ...]
    busy: tuple[Engine, ...]
    idle: tuple[str, ...]  # engines that neither the first nor the best kernel uses
    slowest_us: float
    gains: tuple[float | None, ...]  # of each step of the lineage over the one before


def render(page: Page) -> str:
    """The HTML text of a page."""
    sections = tuple(_section(result, number) for number, result in enumerate(page.results, 1))
    template = _environment().get_template("page.html.j2")
    return template.render(page=page, sections=sections)


def _section(result: RunReport, number: int) -> Section:
    times = [s.us for s in result.lineage if s.us is not None]
    return Section(
        result=result,
        anchor=f"run-{number}",
        curve=drawing.curve(result),
        narrow=drawing.curve(result, drawing.NARROW),
        maps=heatmap.maps(result.archive),
        stages=_stages(result),
        busy=tuple(e for e in result.engines if e.first or e.best),
        idle=tuple(e.name for e in result.engines if not (e.first or e.best)),
        slowest_us=max(times, default=1.0),
        gains=_gains(result),
    )


def _gains(result: RunReport) -> tuple[float | None, ...]:
    """The speed-up of each step of the lineage over the one before."""
    times = [s.us for s in result.lineage]
    return (None, *(quantity.ratio(a, b) for a, b in zip(times, times[1:])))[: len(times)]


def _stages(result: RunReport) -> tuple[Stage, ...]:
    failed = result.failed
    counts = Counter(t.stage for t in failed)
    stages = []
    for name, count in counts.most_common():
        reasons = Counter(t.reason for t in failed if t.stage == name)
        shown = tuple(reasons.most_common(REASONS))
        others = count - sum(n for _, n in shown)
        stages.append(Stage(name, count, count / len(failed), shown, others))
    return tuple(stages)


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for function in (quantity.time, quantity.factor, quantity.share, quantity.shape):
        environment.filters[function.__name__] = function
    environment.filters["style"] = _style
    return environment


@pass_environment
def _style(environment: Environment, name: str) -> Markup:
    """The text of a template without data, which needs no escaping."""
    return Markup(environment.get_template(name).render())
