"""Seeds of pooling windows in three dimensions: the filter taps along the last dimension are
unrolled.

On an H200 a max pooling of 3 x 3 x 3 over 4.3 GB took 1.37 ms with a loop over the taps of a row,
and 1.32 ms unrolled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ir.lower.lower import fits
from ir.lower.verb_table import canonical
from ir.machine import Machine
from ir.schedule import Decision, Schedule
from ir.spec import Index, Reduce, Spec
from machines.gpu.index_roles import extents, roles

LEAST, MOST = 3, 4  # least number of tap indices; most taps along the last dimension


def with_taps(
    spec: Spec, machine: Machine, sizes: Mapping[str, int], schedule: Schedule
) -> Schedule:
    """The schedule with the loop over the taps of the last dimension unrolled, where the window has
    several other tap indices. Returns the schedule unchanged without such a loop, or with a matmul
    on the matrix unit."""
    taps = roles(spec).taps
    windows = [e for e in spec.equations if isinstance(e.value, Reduce) and taps & set(e.reduced)]
    if schedule.of("compute") or len(windows) != 1 or len(taps) < LEAST:
        return schedule
    last = {
        i.name
        for r in windows[0].reads()
        for i in r.at[-1:]
        for i in i.walk()
        if isinstance(i, Index)
    }
    inner = [i for i in windows[0].reduced if i in taps & last]
    if len(inner) != 1 or not 2 <= extents(spec, sizes)[inner[0]] <= MOST:
        return schedule
    kept = [d for d in schedule.decisions if d.subject not in (inner[0], f"{inner[0]}.outer")]
    found = canonical(replace(schedule, decisions=(Decision("unroll", inner[0]), *kept)))
    return found if fits(spec, found, machine, sizes) else schedule
