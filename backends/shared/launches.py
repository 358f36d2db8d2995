"""The launches of a kernel: its tensors, and each launch with the numbers of its tensors and its
sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ir.nest.nest import LoopNest, Parameter


@dataclass(frozen=True, slots=True)
class Call:
    """One launch."""

    launch: str
    tensors: tuple[int, ...]  # numbers in the kernel's list of tensors
    sizes: tuple[int, ...]  # its sizes, followed by the step of its recurrence if it has one


def tensors(nest: LoopNest) -> tuple[Parameter, ...]:
    """Every global tensor of a nest, without duplicates."""
    return tuple({p.name: p for launch in nest.launches for p in launch.parameters}.values())


def calls(nest: LoopNest, bound: Mapping[str, int]) -> tuple[Call, ...]:
    """The launches in order; those of a recurrence once for each step. bound: all sizes."""
    number = {p.name: n for n, p in enumerate(tensors(nest))}
    return tuple(
        Call(
            launch.name,
            tuple(number[p.name] for p in launch.parameters),
            (*(bound[s] for s in launch.sizes), *((step,) if repeat else ())),
        )
        for repeat, group in nest.groups()
        for step in (repeat.steps(bound) if repeat else (0,))
        for launch in group
    )
