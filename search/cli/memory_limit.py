"""Compares the memory that a search needs for inputs and references with this machine's memory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from math import prod
from pathlib import Path

import numpy as np

from backends.measure import leaves_inputs
from ir.errors import KernelError
from ir.reference.formulas import all_follow
from ir.reference.inputs import DRAWN, drawn_bytes
from ir.reference.rounding import HELD_AS
from ir.sizes import bind, shape
from ir.spec import Spec
from ir.workload import Sizes
from search.cli.suite import Problem
from search.core import quantity
from search.core.lowered import spec_of

LARGE = 1 << 26  # bytes of inputs
SEEDS = 2  # seeds of the inputs in comparisons
LIMITS = (  # memory limits of a control group, versions 2 and 1
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
MEMORY = Path("/proc/meminfo")


def require_memory(
    problems: Sequence[Problem], workers: int, traced: bool, room: int | None = None
) -> None:
    """Raises KernelError if the inputs of a kernel do not fit in memory.

    workers: processes that evaluate, each with its own inputs. traced: whether a timeline is made,
    which takes inputs too. room: available bytes; None: those of this machine.
    """
    there = available() if room is None else room
    if there is None:
        return
    for problem in problems:
        spec = spec_of(problem.settings.spec)
        for sizes in problem.settings.checks:
            if _on_device(problem, spec, sizes):
                continue
            _require(problem, sizes, compared_bytes(spec, sizes), workers, there, "a check")
        drawn = _draws(problem)
        if drawn or traced:
            shapes = [one.sizes for one in problem.settings.shapes]
            each = workers if drawn else 1
            for sizes in shapes:
                if not traced and _on_device(problem, spec, sizes):
                    continue
                _require(problem, sizes, timed_bytes(spec, shapes, sizes), each, there, "tuning")


def are_large(problems: Sequence[Problem]) -> bool:
    """Whether evaluating processes should share the inputs of a timed shape. Otherwise each would
    draw them and compute their references, which takes seconds."""
    return any(
        timed_bytes(spec_of(p.settings.spec), [one.sizes], one.sizes) >= LARGE
        for p in problems
        if _draws(p)
        for one in p.settings.shapes
    )


def timed_bytes(spec: Spec, shapes: Sequence[Sizes], at: Sizes) -> int:
    """The least memory of a process that draws the inputs at a shape while it holds those at other
    shapes, in bytes."""
    held = sum(drawn_bytes(spec, sizes)[0] for sizes in shapes)
    return held + drawn_bytes(spec, at)[1]


def compared_bytes(spec: Spec, sizes: Sizes) -> int:
    """The least memory of a process that holds the references at a shape, in bytes.

    It includes the inputs, the results in their dtype and in float64 for each seed, and temporaries
    of drawing.
    """
    held, beside = drawn_bytes(spec, sizes)
    bound = bind(spec, sizes)
    results = sum(
        prod(shape(t, bound)) * (DRAWN + np.dtype(HELD_AS[t.dtype]).itemsize) for t in spec.outputs
    )
    return SEEDS * (held + results) + beside


def available() -> int | None:
    """Bytes of memory that a process may still use; None if unknown."""
    found = [_limit(file) for file in LIMITS]
    known = [each for each in (*found, _free()) if each is not None]
    return min(known, default=None)


def _require(
    problem: Problem, sizes: Sizes, needed: int, workers: int, there: int, purpose: str
) -> None:
    if workers * needed <= there:
        return
    several = (
        f"{workers} workers need {_gib(workers * needed)} of memory"
        if workers > 1
        else (f"{_gib(needed)} of memory are needed")
    )
    fewer = f", or --workers={there // needed}" if workers > 1 and there >= needed else ""
    option = "--shape" if purpose == "tuning" else "a `check(...)` line of its file"
    raise KernelError(
        f"`{problem.settings.kernel}` at {quantity.shape(sizes)}: {several} for its inputs at "
        f"{purpose} sizes, and {_gib(there)} are available",
        where="--shape" if purpose == "tuning" else f"kernel `{problem.settings.kernel}`",
        hint=f"give smaller sizes with {option}{fewer}",
    )


def _draws(problem: Problem) -> bool:
    """Whether timing needs inputs. A modelled time does not."""
    served = problem.served.values()
    return any(s.backend.available(s.machine).get("time_kind") != "modelled" for s in served)


def _on_device(problem: Problem, spec: Spec, sizes: Sizes) -> bool:
    """Whether the device makes the inputs of a shape, and keeps the outputs."""
    served = problem.served.values()
    return all(leaves_inputs(s.backend, s.machine) for s in served) and all_follow(spec, sizes)


def _gib(count: int) -> str:
    return f"{quantity.rounded(count / 2**30)} GiB"


def _limit(file: Path) -> int | None:
    """The limit in a control group's file; None if there is none."""
    try:
        return int(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # no such file, or `max`
        return None


def _free() -> int | None:
    try:
        for line in MEMORY.read_text(encoding="utf-8").splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
    except (OSError, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return None
