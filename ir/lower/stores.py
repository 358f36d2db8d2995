"""Stored regions: where a tensor's tile is stored, and which tensors are stored from their end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

from ir.errors import KernelError
from ir.lower.launches import Segment
from ir.lower.scope import Scope
from ir.nest.nest import Slice, Tile
from ir.spec import Equation, Expr, Number, Read, Spec
from ir.variant.expansion import mirrored


class Demand(Protocol):
    """What a stored region needs from the program that it is part of."""

    spec: Spec  # the variant

    def counts_parts(self, index: str) -> bool:
        """Whether an index counts the parts of a split and each thread block makes one of them."""

    def rows(self, tensor: str, position: Expr, scope: Scope) -> Tile:
        """A tile of the positions along one dimension of a tensor."""


def stored_from_end(spec: Spec, segment: Segment) -> Mapping[str, str]:
    """The reverse scans that a launch stores, each with the scan of mirrored terms that computes
    it."""
    here = set(segment.by_target())
    return {scan: back for back, scan in mirrored(spec).items() if {scan, back} <= here}


def stored_region(program: Demand, equation: Equation, back: str, home: Scope) -> tuple[Slice, ...]:
    """The positions of a tensor's tile in memory.

    Raises KernelError if a part of a larger tensor is stored from its end.

    back: see `stored_from_end`; empty if the tensor is stored at its own indices.
    """
    parts = {t.name: t.part for t in program.spec.outputs}
    part = parts.get(equation.target)
    region = tuple(
        Slice(
            None if program.counts_parts(i) else i,
            ((i, 1),),
            Number(part.first if part is not None and n == part.axis else 0),
        )
        for n, i in enumerate(equation.indices)
    )
    if not back or not isinstance(equation.value, Read):
        return region
    if part is not None:
        raise KernelError(
            f"`{equation.target}`, a part of a larger tensor, is stored from its end",
            allowed="a tensor of its own",
        )
    return tuple(
        one if at == own else replace(one, rows=program.rows(equation.target, at, home))
        for one, own, at in zip(region, equation.at, equation.value.at, strict=True)
    )
