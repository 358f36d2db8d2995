"""A plot of searches as SVG: for each kernel, the best time so far of each configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from math import log
from typing import Any

from benchmarks.search.statistics import curves

Row = Mapping[str, Any]
ACROSS = 3  # Panels per line.
WIDTH, HEIGHT = 300, 200  # Size of a panel, in pixels.
LEFT, TOP, GAP = 46, 30, 26
COLOURS = (
    "#4477aa",
    "#ee6677",
    "#228833",
    "#ccbb44",
    "#66ccee",
    "#aa3377",
    "#ee7733",
    "#009988",
    "#882255",
    "#999933",
    "#332288",
)
BASELINES = {"random": "#999999", "tpe": "#444444"}  # Drawn with dashes.
LARGEST = 2.0  # The upper edge, as a multiple of the best known time.
MARKS = (1.0, 1.02, 1.05, 1.1, 1.2, 1.5, 2.0)
STYLE = "font: 11px system-ui, sans-serif; fill: #444"


def plot(rows: Sequence[Row], names: Sequence[str]) -> str:
    """Returns the plot as SVG text, with one panel for each kernel."""
    found = curves(rows, names)
    lines = -(-len(found) // ACROSS)
    width = ACROSS * (WIDTH + GAP) + LEFT
    legend = TOP + lines * (HEIGHT + TOP + GAP)
    per_line = max(1, (width - LEFT) // 160)
    height = legend + 20 * -(-len(names) // per_line) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img">',
        "<title>Best so far over the best known, by evaluations</title>",
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for number, (kernel, of) in enumerate(found.items()):
        x = LEFT + number % ACROSS * (WIDTH + GAP)
        y = TOP + number // ACROSS * (HEIGHT + TOP + GAP)
        parts += _panel(kernel, of, x, y)
    for number, name in enumerate(names):
        x, y = LEFT + number % per_line * 160, legend + number // per_line * 20 + 6
        parts.append(f'<path d="M{x} {y}h22" {_pen(name, names)}/>')
        parts.append(f'<text x="{x + 28}" y="{y + 4}" style="{STYLE}">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(kernel: str, of: Mapping[str, Sequence[float]], x: float, y: float) -> list[str]:
    names = list(of)
    count = max(len(curve) for curve in of.values())
    high = min(LARGEST, max(1.05, *(curve[0] for curve in of.values())))
    parts = [
        f'<text x="{x}" y="{y - 8}" style="{STYLE}; font-weight: 600">{escape(kernel)}</text>',
        f'<path d="M{x} {y}v{HEIGHT}h{WIDTH}" fill="none" stroke="#888"/>',
        f'<text x="{x + WIDTH}" y="{y + HEIGHT + 14}" text-anchor="end" style="{STYLE}">'
        f"{count} evaluations</text>",
    ]
    for mark in MARKS:
        if mark <= high:
            at = _up(mark, high, y)
            parts.append(f'<path d="M{x} {at}h{WIDTH}" stroke="#ddd"/>')
            parts.append(
                f'<text x="{x - 5}" y="{at + 4}" text-anchor="end" style="{STYLE}">{mark:g}</text>'
            )
    for name, curve in of.items():
        places = (
            f"{round(x + WIDTH * n / (count - 1 or 1), 1)} {_up(v, high, y)}"
            for n, v in enumerate(curve)
        )
        parts.append(f'<path d="M{"L".join(places)}" {_pen(name, names)}/>')
    return parts


def _up(value: float, high: float, y: float) -> float:
    """Returns the height of a ratio on a logarithmic axis. A ratio beyond the edge is drawn on
    it."""
    return round(y + HEIGHT * (1 - log(min(value, high)) / log(high)), 1)


def _pen(name: str, names: Sequence[str]) -> str:
    if name in BASELINES:
        return f'fill="none" stroke="{BASELINES[name]}" stroke-width="1.6" stroke-dasharray="5 3"'
    others = [n for n in names if n not in BASELINES]
    colour = COLOURS[others.index(name) % len(COLOURS)]
    return f'fill="none" stroke="{colour}" stroke-width="1.6"'
