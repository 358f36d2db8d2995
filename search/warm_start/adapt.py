"""Adaptation: the decisions of a schedule that are legal for another variant or machine."""

from __future__ import annotations

from ir.lower.verb_table import canonical
from ir.machine import Machine
from ir.schedule import Schedule
from ir.spec import Spec
from ir.workload import Sizes
from search.core.lowered import fits_at, schedule_text, settled_schedule, variant_text
from search.warm_start.autoscheduled import scheduled

PASSES = 3  # over the decisions, because one may need a later one


def adapted(spec: Spec, schedule: Schedule, machine: Machine, sizes: Sizes) -> Schedule:
    """The schedule if it lowers; else the machine's autoschedule with those of its decisions that
    lower.

    The decisions replace those of the autoschedule with the same verb and subject, one by one. A
    decision with which it no longer lowers is left out.
    """
    variant = variant_text(spec)

    def lowers(one: Schedule) -> bool:
        return fits_at(variant, schedule_text(one), machine, sizes)

    schedule = settled_schedule(variant, schedule, machine, sizes)
    if lowers(schedule):
        return schedule
    found = scheduled(spec, machine, sizes)
    left = [d for d in schedule.decisions if d not in found.decisions]
    for _ in range(PASSES):
        refused = []
        for decision in left:
            same = (decision.verb, decision.subject)
            kept = tuple(d for d in found.decisions if (d.verb, d.subject) != same)
            tried = canonical(Schedule(found.kernel, (*kept, decision)))
            if lowers(tried):
                found = tried
            else:
                refused.append(decision)
        if len(refused) == len(left):
            break
        left = refused
    return found
