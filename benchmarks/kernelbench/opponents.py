"""Opponents: a module as PyTorch runs it, eager and compiled, and their times in a row."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import torch

from benchmarks.called import against, our_fields
from benchmarks.kernelbench.venue import Venue
from benchmarks.race import limit
from benchmarks.timing import RaceTimes, TimedCall

CHEAP_SECONDS = 25.0  # of compiling, up to which a further mode is raced too
MOST_WORDS = 400  # of a reason


def opponents(
    module: TimedCall, inputs: Sequence[Any], venue: Venue, modes: Sequence[str], seconds: float
) -> tuple[dict[str, TimedCall], dict[str, str]]:
    """Eager, and what could be compiled in so many seconds, by name; and why another could not.
    After one that fails, or takes long, no further one is tried."""
    made: dict[str, TimedCall] = {"eager": module}
    failures: dict[str, str] = {}
    for name in modes:
        began = time.perf_counter()
        try:
            call = torch.compile(module, **venue.modes[name])
            step = _stepped(call) if name == "reduce_overhead" else call
            with limit(seconds):
                step(*inputs)
                step(*inputs)
            made[name] = step
        except Exception as error:  # whatever a compiler raises
            failures[name] = f"{type(error).__name__}: {error}"[:MOST_WORDS]
        if failures or time.perf_counter() - began > CHEAP_SECONDS:
            break
    return made, failures


def time_fields(ours: Mapping[str, RaceTimes], others: Mapping[str, RaceTimes]) -> dict[str, Any]:
    """The fields of a row that tell times. ours: by how it is called (`benchmarks/called.py`)."""
    mine = our_fields(ours)
    return {
        **mine,
        "baseline_times": {n: asdict(t) for n, t in others.items()},
        **against(mine["us"], {n: t.us for n, t in others.items()}),
    }


def _stepped(call: TimedCall) -> TimedCall:
    """A call that says that the last one's results are no longer needed."""

    def stepped(*inputs: Any) -> Any:
        torch.compiler.cudagraph_mark_step_begin()
        return call(*inputs)

    return stepped
