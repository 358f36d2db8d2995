"""Lowers a loop nest to a tile program."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from backends.backend import BackendError
from backends.gpu.body import BodyBuilder
from backends.gpu.cooperative import gathered
from backends.gpu.grid import cluster_of, grid_statements, tile_counts
from backends.gpu.rules import Rules
from backends.gpu.stream_k import shared_out
from backends.gpu.tile import (
    CONSTANTS,
    Launch,
    Name,
    Power,
    Variable,
    expressions,
)
from backends.gpu.wide import wide_tensors
from backends.parameters import parameters
from ir.machine import Machine
from ir.nest import nest as of
from ir.nest.bulk import shared
from ir.nest.nest import LoopNest, Parameter, Repeat
from ir.spec import Equation, Size


@dataclass(frozen=True, slots=True)
class TileProgram:
    """A kernel: its launches in order, grouped where they repeat together."""

    name: str
    groups: tuple[tuple[Repeat | None, tuple[Launch, ...]], ...]
    tensors: tuple[Parameter, ...]  # inputs, then the tensors that are computed
    wide: frozenset[str]  # tensors with 64-bit positions

    @property
    def launches(self) -> tuple[Launch, ...]:
        """All launches."""
        return tuple(one for _, launches in self.groups for one in launches)


def tile_program(nest: LoopNest, machine: Machine, rules: Rules) -> TileProgram:
    """The tile program of a nest, by the rules of a language: what each thread block of its launches does."""
    rules = replace(
        rules,
        k_last=rules.k_last and machine.reads_shared,
        box_dimensions=machine.model.box_dimensions,
    )
    wide = wide_tensors(nest)
    groups = tuple(
        (
            None if launches[0].meeting else repeat,
            tuple(_launch(nest, one, machine, rules, wide) for one in launches),
        )
        for repeat, launches in nest.groups()
    )
    return TileProgram(nest.spec.name, groups, tuple(parameters(nest)), wide)


def sizes_of(*nodes: object) -> frozenset[str]:
    """The names of the sizes and attributes in expressions, statements and tuples of them."""
    return frozenset(n.name for n in expressions(*nodes) if isinstance(n, Size))


def _launch(
    nest: LoopNest, launch: of.Launch, machine: Machine, rules: Rules, wide: frozenset[str]
) -> Launch:
    body = BodyBuilder(launch, rules, wide)
    if launch.stream_k and not rules.shares:
        raise BackendError("emit", f"blocks of `{launch.name}` hand no parts of sums to each other")
    if launch.meeting and not rules.cooperative:
        raise BackendError("emit", f"blocks of `{launch.name}` do not meet at a grid barrier")
    if launch.cluster and not (rules.clusters and _shares(launch, launch.cluster.index)):
        launch = replace(launch, cluster=None)
    size = launch.cluster.size if launch.cluster else 1
    once, each, grid = body.once(), body.each(), grid_statements(launch)
    tiles = tile_counts(launch)
    counted = (*tiles, launch.repeat.size) if launch.meeting and launch.repeat else ()
    read = list(expressions(once, each, grid, tiles if launch.resident else counted))
    sizes = sizes_of(*read)
    used = {n for n in read if isinstance(n, Name) and n.sort in CONSTANTS}
    constants = [*body.blocks.constants(), *body.steps.items()]
    constants += [(d.flag, d.condition) for d in body.descriptors]
    made = Launch(
        name=launch.name,
        equations=tuple(_equations(nest, launch)),
        tensors=tuple(p.name for p in launch.parameters),
        descriptors=tuple(body.descriptors),
        sizes=tuple(s for s in launch.sizes if s in sizes),
        specialized=launch.specialized,
        step=Name("origin", launch.repeat.index) if launch.repeat else None,
        attributes=tuple((n, v) for n, v in nest.spec.attributes if n in sizes),
        exponentials=any(isinstance(n, Power) for n in read),
        constants=tuple((n, value) for n, value in constants if n in used),
        grid=grid,
        tiles=tiles,
        resident=machine.parallel * launch.resident // size * size,
        once=once,
        body=each,
        stages=max((body.values[s.value].stages for s in _looped(launch.body)), default=1),
        warps=launch.threads // machine.warp if launch.threads else rules.warps,
        registers=launch.registers,
        cluster=cluster_of(launch),
        variables=tuple(
            Variable(Name("value", v.name), v.dtype, body.axes_of(v.name))
            for v in launch.values
            if v.name not in body.late
        ),
        widths=tuple((i, b.wide) for i, b in body.blocks.blocks.items() if not b.scalar),
    )
    if launch.meeting:
        return gathered(made, launch)
    return shared_out(made, launch) if launch.stream_k else made


def _shares(launch: of.Launch, index: str) -> bool:
    """Whether tiles along an index share a bulk copy."""
    return any(isinstance(s, of.Load) and shared(s, index) for s in launch.statements())


def _equations(nest: LoopNest, launch: of.Launch) -> Iterator[Equation]:
    """The equations that a launch computes."""
    values = {v.tensor for v in launch.values if not v.loaded}
    added = {s.tensor for s in launch.statements() if isinstance(s, of.Store) and s.reduction}
    for e in nest.variant.equations:
        if e.target in (added if e.accumulate else values):
            yield e


def _looped(block: tuple[of.Statement, ...]) -> Iterator[of.Load]:
    """The loads inside of loops."""
    for loop in (s for s in block if isinstance(s, of.Loop)):
        yield from (s for s in loop.body if isinstance(s, of.Load))
        yield from _looped(loop.body)
