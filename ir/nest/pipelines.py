"""Checks pipeline stages on machines where a loop, and not a tensor, has a number of stages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ir.errors import KernelError
from ir.machine import Machine
from ir.nest.nest import Launch, Load, Loop
from ir.schedule import Schedule


def require_pipelines(launches: tuple[Launch, ...], schedule: Schedule, machine: Machine) -> None:
    """Raises KernelError if the loads of one loop are given different numbers of stages.

    Raises it as well if a tensor is given stages that no loop loads. Both apply only to a machine
    whose backend pipelines whole loops. A load without a decision of its own has the stages of its
    loop.
    """
    if not machine.stages_of_loops:
        return
    looped: set[str] = set()
    for launch in launches:
        for where, tensors in _loads(launch):
            looped |= set(tensors)
            _require_alike(where, tensors, schedule, machine)
    for decision in schedule.of("pipeline"):
        if decision.subject not in looped:
            raise KernelError(
                f"no loop loads `{decision.subject}`, and backend `{machine.rendering.backend}` "
                "pipelines loads in loops only",
                place=decision.place,
                allowed=", ".join(sorted(looped)) or "none",
                hint=f"drop {decision}",
            )


def _require_alike(
    where: str, tensors: Iterable[str], schedule: Schedule, machine: Machine
) -> None:
    made = [d for t in dict.fromkeys(tensors) if (d := schedule.find("pipeline", t))]
    for one in made[1:]:
        first, stages = made[0], made[0].option("stages")
        if one.option("stages") != stages:
            raise KernelError(
                f"`{first.subject}` has {stages} pipeline stages and `{one.subject}` "
                f"{one.option('stages')} in {where}, to which backend "
                f"`{machine.rendering.backend}` gives one number",
                place=one.place or first.place,
                allowed="the same number for all loads there",
                hint=f"pipeline({one.subject}, stages={stages})",
            )


def _loads(launch: Launch) -> Iterator[tuple[str, list[str]]]:
    """The loads of each loop. The loops of a persistent launch count as one with the loop over
    tiles."""
    found = [
        (f"the loop over `{s.index}`", [x.tensor for x in s.body if isinstance(x, Load)])
        for s in launch.statements()
        if isinstance(s, Loop)
    ]
    if launch.resident:
        return iter([("one persistent launch", [t for _, tensors in found for t in tensors])])
    return iter(found)
