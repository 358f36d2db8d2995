"""Frames: the part of lowering that does not depend on tile sizes.

Most schedules that a search lowers differ from an earlier one in tile sizes only. They share a
frame, which is built once: its checks, its equations, its launches with open tile sizes.
"""

from __future__ import annotations

from dataclasses import dataclass

from ir.lower.launch import launch
from ir.lower.launches import segments, tilings
from ir.lower.tile_sizes import OpenLaunch, told_apart
from ir.lower.verbs import require_legal
from ir.machine import Machine
from ir.memo import Recent
from ir.schedule import Decision, Schedule
from ir.spec import Spec
from ir.variant.atomic import facts_with_places
from ir.variant.narrow import require_range
from ir.variant.variant import formulate

MOST = 256  # frames that are cached for a spec
SPECS = 8  # specs whose frames are cached


@dataclass(frozen=True, slots=True)
class Frame:
    """What schedules that differ only in tile sizes share."""

    variant: Spec
    launches: tuple[OpenLaunch, ...]


_FRAMES: Recent[Spec, Recent[Machine, Frame]] = Recent(SPECS)


def frame(spec: Spec, schedule: Schedule, machine: Machine) -> Frame:
    """The frame of a schedule. Raises KernelError if a decision is illegal at all tile sizes."""
    if not schedule.exact():
        return _frame(spec, schedule, machine)
    told = told_apart(spec.equations, schedule)
    key = (
        schedule.kernel,
        *[d if d.subject in told or not _is_size(d) else d.subject for d in schedule.decisions],
    )
    known = _FRAMES.get(spec, None) or _FRAMES.put(spec, None, Recent(MOST))
    return known.get(machine, key) or known.put(machine, key, _frame(spec, schedule, machine))


def _is_size(decision: Decision) -> bool:
    """Whether a decision is a legal tile size."""
    if decision.verb != "tile" or len(decision.options) != 1:
        return False
    ((name, size),) = decision.options
    return name == "size" and isinstance(size, int) and size > 0


def _frame(spec: Spec, schedule: Schedule, machine: Machine) -> Frame:
    require_legal(spec, schedule, machine)
    require_range(spec, schedule, machine)
    variant = formulate(spec, schedule)
    facts = facts_with_places(variant)
    parts = segments(variant, schedule)
    cut = tuple(
        tilings(segment, facts, schedule, machine.model.copies_fill_grid) for segment in parts
    )
    machine.model.require_met(schedule, parts, cut)
    launches = tuple(
        launch(variant, facts, schedule, machine, segment, one)
        for segment, one in zip(parts, cut, strict=True)
    )
    return Frame(variant, launches)
