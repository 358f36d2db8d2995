"""The memory that a search needs for inputs and references, against what this machine has."""

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
SEEDS = 2  # of the inputs that results are compared for
LIMITS = (  # of the memory of a group of processes, versions 2 and 1
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
MEMORY = Path("/proc/meminfo")


def require_memory(
    problems: Sequence[Problem], workers: int, traced: bool, room: int | None = None
) -> None:
    """KernelError where the inputs of a kernel do not fit into memory.

    workers: processes that evaluate, each with inputs of its own.  traced: a timeline is made,
    which takes inputs too.  room: bytes that there are; by default those that are available.
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
    """Whether processes that evaluate should share the inputs of a shape that is timed: each of its own would
    draw them, and compute their references, for seconds."""
    return any(
        timed_bytes(spec_of(p.settings.spec), [one.sizes], one.sizes) >= LARGE
        for p in problems
        if _draws(p)
        for one in p.settings.shapes
    )


def timed_bytes(spec: Spec, shapes: Sequence[Sizes], at: Sizes) -> int:
    """The least that a process holds when it draws the inputs of a shape, the others' being there."""
    held = sum(drawn_bytes(spec, sizes)[0] for sizes in shapes)
    return held + drawn_bytes(spec, at)[1]


def compared_bytes(spec: Spec, sizes: Sizes) -> int:
    """The least that a process holds when it has the references at a shape: inputs and results,
    the latter in their dtype and in float64, for each seed; and what drawing takes."""
    held, beside = drawn_bytes(spec, sizes)
    bound = bind(spec, sizes)
    results = sum(
        prod(shape(t, bound)) * (DRAWN + np.dtype(HELD_AS[t.dtype]).itemsize) for t in spec.outputs
    )
    return SEEDS * (held + results) + beside


def available() -> int | None:
    """Bytes of memory that a process may still take here; None where that is not known."""
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
    """Whether timing takes inputs: a modelled time does not."""
    served = problem.served.values()
    return any(s.backend.available(s.machine).get("time_kind") != "modelled" for s in served)


def _on_device(problem: Problem, spec: Spec, sizes: Sizes) -> bool:
    """Whether the inputs of a shape are made on the device, and outputs stay there."""
    served = problem.served.values()
    return all(leaves_inputs(s.backend, s.machine) for s in served) and all_follow(spec, sizes)


def _gib(count: int) -> str:
    return f"{quantity.rounded(count / 2**30)} GiB"


def _limit(file: Path) -> int | None:
    """The limit that a file of a group of processes holds; None for none."""
    try:
        return int(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # not there, or `max`
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
