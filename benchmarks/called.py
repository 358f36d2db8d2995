"""Times a call of ours in two ways: directly, and as a CUDA graph. The faster one counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from benchmarks.timing import RaceTimes

CALL, GRAPH = "call", "graph"  # The two ways.


def best(times: Mapping[str, RaceTimes]) -> str:
    """Returns the name of the faster way."""
    return min(times, key=lambda how: times[how].us)


def our_fields(mine: Mapping[str, RaceTimes]) -> dict[str, Any]:
    """Returns the fields of a row with our time: the faster of a call and its graph."""
    fastest = mine[best(mine)]
    return {
        "us": fastest.us,
        "p20_us": fastest.p20,
        "p80_us": fastest.p80,
        "runs": fastest.runs,
        "host_us": fastest.host_us,
        "wall_us": fastest.wall_us,
        "clocks_agree": fastest.clocks_agree,
        "called_as": best(mine),
        "times": {how: asdict(t) for how, t in mine.items()},
    }


def against(us: float, baselines_us: Mapping[str, float]) -> dict[str, Any]:
    """Returns the fields of a row that compare our time with the baselines."""
    fastest = min(baselines_us, key=baselines_us.__getitem__)
    return {
        "baselines_us": dict(baselines_us),
        "fastest": fastest,
        "speedup": baselines_us[fastest] / us,
        "speedups": {name: t / us for name, t in baselines_us.items()},
    }
