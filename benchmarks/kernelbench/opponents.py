"""Opponents: a module as PyTorch runs it, eager and compiled, and their times in a row."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import torch

from benchmarks.called import against, our_fields
from benchmarks.device_lock import running_limit
from benchmarks.kernelbench.venue import Venue
from benchmarks.notes import MOST_WORDS
from benchmarks.race import stepped
from benchmarks.timing import RaceTimes, TimedCall

CHEAP = 0.75  # Share of the seconds for a mode, up to which a further one is raced too.
GRAPHS = "reduce_overhead"  # The mode that records CUDA graphs.


def opponents(
    module: torch.nn.Module,
    inputs: Sequence[Any],
    venue: Venue,
    modes: Sequence[str],
    seconds: float,
) -> tuple[dict[str, TimedCall], dict[str, str]]:
    """Returns eager, and the modes that compile within so many seconds, by name; and why another
    did not.

    After a slow one, no further one is tried. Seconds in which this process is stopped do not
    count.
    """
    made: dict[str, TimedCall] = {"eager": module}
    failures: dict[str, str] = {}
    for name in modes:
        try:  # It surrounds the limit, which may expire while an error is handled.
            with running_limit(seconds) as ran:
                made[name] = _compiled(module, inputs, venue, name)
        except Exception as error:  # Compilers raise all kinds of errors.
            failures[name] = f"{type(error).__name__}: {error}"[:MOST_WORDS]
        if ran.seconds > CHEAP * seconds:
            break
    return made, failures


def _compiled(module: torch.nn.Module, inputs: Sequence[Any], venue: Venue, name: str) -> TimedCall:
    """Returns a mode's call, which has run twice.

    A mode that records a graph has its own module. What a module keeps between calls is then the
    graph's memory, which no one else may read.
    """
    graph = name == GRAPHS
    call: TimedCall = torch.compile(copy.deepcopy(module) if graph else module, **venue.modes[name])
    step = partial(stepped, call) if graph else call
    step(*inputs)
    step(*inputs)
    return step


def time_fields(ours: Mapping[str, RaceTimes], others: Mapping[str, RaceTimes]) -> dict[str, Any]:
    """Returns the fields of a row with times. ours: by way of calling (`benchmarks/called.py`)."""
    mine = our_fields(ours)
    return {
        **mine,
        "baseline_times": {n: asdict(t) for n, t in others.items()},
        **against(mine["us"], {n: t.us for n, t in others.items()}),
    }
