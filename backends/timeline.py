"""Timelines in Chrome's trace format, which a backend's `profile` writes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from backends.backend import Built


@dataclass(frozen=True, slots=True)
class Bar:
    """An interval of a timeline: a launch, or the work of an engine."""

    name: str
    us: float
    start_us: float | None = None  # None: the end of the bar before it
    facts: Mapping[str, float] = field(default_factory=dict)


def facts_of(built: Built, launch: str) -> dict[str, float]:
    """The figures of one launch of a kernel."""
    return {name: f for name, f in built.figures.items() if name.startswith(f"{launch}.")}


def write_timeline(trace: Path, bars: Iterable[Bar]) -> None:
    """Writes bars to a file, in order."""
    events, end = [], 0.0
    for bar in bars:
        start = end if bar.start_us is None else bar.start_us
        event = {"name": bar.name, "ph": "X", "ts": start, "dur": bar.us, "pid": 0, "tid": 0}
        events.append(event | ({"args": dict(bar.facts)} if bar.facts else {}))
        end = start + bar.us
    trace.write_text(json.dumps({"displayTimeUnit": "ns", "traceEvents": events}), "utf-8")
