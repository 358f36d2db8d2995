"""The class of GPUs: threads of a block share a tile out in registers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ir.contraction import contraction
from ir.lower.launches import Segment, Tiling
from ir.machine import Cost, Machine
from ir.nest.footprint import tables
from ir.nest.nest import Launch, LoopNest, Value
from ir.schedule import Decision, Schedule
from ir.spec import Spec
from ir.workload import Sizes
from machines.gpu import (
    clusters,
    facts,
    grid_mapping,
    limits,
    matmuls,
    quick_cost,
    registers,
    shared_memory,
    shared_rows,
)
from machines.gpu.bulk_seeds import in_bulk, in_turns, of_windows, with_epilogue
from machines.gpu.cooperative_seeds import in_one_launch
from machines.gpu.index_roles import roles
from machines.gpu.launch_changes import launch_changes
from machines.gpu.pass_seeds import with_passes
from machines.gpu.point_seeds import with_vectors
from machines.gpu.role_seeds import with_roles
from machines.gpu.seed import seed
from machines.gpu.tap_seeds import with_taps
from machines.gpu.warpgroup_seeds import for_warpgroups
from machines.gpu.window_seeds import of_packed_windows, of_windows_in_blocks

VERBS = frozenset(
    {
        "associate",
        "unroll",
        "split_k",
        "flatten",
        "atomic",
        "mirror",
        "pack",
        "causal_bound",
        "rasterize",
        "threads",
        "persistent",
        "specialize",
        "registers",
        "warps",
        "instruction",
        "overlap",
        "unroll_loop",
        "serpentine",
        "cache",
        "cluster",
        "swizzle",
        "pad",
        "epilogue",
        "roles",
        "pingpong",
        "stream_k",
        "cooperative",
    }
)


@dataclass(frozen=True, slots=True)
class Gpu:
    """Facts of GPUs; see `ir.machine.MachineClass`."""

    name: str = "gpu"
    tables: tuple[str, ...] = ("gpu",)
    word: str = "threads"
    on_chip: str = "shared"
    verbs: frozenset[str] = VERBS
    largest_tile: int = 4096
    buffers_results: bool = False
    copies_fill_grid: bool = True
    matmul_needs_columns: bool = True
    boxes_are_powers_of_two: bool = True
    box_steps: int = 8  # strides of elements (CUDA driver API)
    box_dimensions: int = 5  # of TMA (CUDA driver API)
    box_slot_bytes: int = 128  # TMA writes to shared memory at multiples of it
    block_per_tile: bool = True
    even_grids: bool = False
    channels_last: bool = True

    def check(self, machine: Machine) -> None:
        """Holds the table `[gpu]` of a target file to the chip's other figures."""
        if "gpu" in machine.details:
            facts.check(machine)

    def scaled_block(self, machine: Machine, dtype: str) -> int:
        """What the chip's matrix instructions say."""
        known = (i for i in matmuls.instructions(machine) if i.a.dtype == i.b.dtype == dtype)
        return max((i.block for i in known), default=0)

    def check_decision(self, decision: Decision, machine: Machine) -> None:
        """KernelError where a decision by a verb of the class asks for what the machine lacks."""
        limits.check_decision(decision, machine)
        shared_rows.check_decision(decision)
        matmuls.check_decision(decision, machine)
        clusters.check_decision(decision, machine)

    def require_decided(
        self, launches: Sequence[Launch], schedule: Schedule, machine: Machine, sizes: Sizes
    ) -> None:
        """KernelError at a decision on a matmul that does not go with its operands or its tile, and
        at a cluster whose blocks share nothing."""
        matmuls.require_decided(launches, schedule, machine, sizes)
        clusters.require_decided(launches, schedule)

    def matmul_changes(
        self, spec: Spec, schedule: Schedule, machine: Machine
    ) -> Iterator[tuple[Decision | None, Decision | None]]:
        """Other matrix instructions, ways in which warps share a result, and layouts of operands."""
        yield from matmuls.changes(spec, schedule, machine)
        yield from shared_rows.changes(spec, schedule, machine)

    def single_indices(self, spec: Spec) -> Collection[str]:
        """Filter taps: padded to a power of two, a tile of them would be mostly padding."""
        return roles(spec).taps

    def launch_fields(
        self, schedule: Schedule, segment: Segment, tilings: Mapping[str, Tiling]
    ) -> Mapping[str, Any]:
        """Threads, the order of tiles, residence, and whether sizes are constants."""
        return grid_mapping.launch_fields(schedule, segment, tilings)

    def require_met(
        self,
        schedule: Schedule,
        parts: Sequence[Segment],
        cut: Sequence[Mapping[str, Tiling]],
    ) -> None:
        """KernelError at a decision on a launch as a whole that applies to no launch."""
        grid_mapping.require_met(schedule, parts, cut)

    def launch_changes(
        self, spec: Spec, schedule: Schedule, machine: Machine
    ) -> Iterator[tuple[Decision | None, Decision | None]]:
        """Other orders of tiles, numbers of threads and residences, and ways in which results leave."""
        yield from launch_changes(spec, schedule, machine)
        yield from shared_rows.epilogue_changes(spec, schedule, machine)

    def on_chip_bytes(self, launch: Launch, machine: Machine, sizes: Sizes) -> int:
        """Shared memory: what matmuls are loaded and laid out in, and what moves in bulk."""
        return shared_memory.shared_bytes(launch, machine, sizes)

    def on_chip_parts(self, launch: Launch, machine: Machine, sizes: Sizes) -> Mapping[str, int]:
        """The same by value."""
        return shared_memory.shared_parts(launch, machine, sizes)

    def register_bytes(self, launch: Launch, sizes: Sizes) -> int:
        """The largest value, beside all that is carried through a loop."""
        return registers.register_bytes(launch, sizes)

    def register_parts(self, launch: Launch, sizes: Sizes) -> Mapping[str, int]:
        """What lies neither in shared memory nor in global memory only."""
        return registers.register_parts(launch, sizes)

    def space_of(self, value: Value, launch: Launch) -> str:
        """Shared memory for what is staged; a table that is searched stays in global memory."""
        if value.name in tables(launch):
            return "global"
        return "shared" if value.name in shared_memory.staged_values(launch) else "register"

    def exchanges(self, launch: Launch) -> int:
        """What threads load into shared memory for each other."""
        return len(shared_memory.staged_values(launch))

    def holds(self, nest: LoopNest, machine: Machine, sizes: Sizes) -> bool:
        """Whether no launch spills registers."""
        return quick_cost.holds(nest, machine, sizes)

    def quick_us(self, nest: LoopNest, machine: Machine, sizes: Sizes) -> float:
        """Microseconds, from what blocks do and how many a multiprocessor holds."""
        return quick_cost.quick_us(nest, machine, sizes)

    def seed(
        self,
        spec: Spec,
        machine: Machine,
        sizes: Sizes,
        rounded: Collection[str],
        cost: Cost | None,
    ) -> Schedule:
        """The best of a few hundred schedules by the quick cost, or by `cost`; a large matmul in
        bulk."""
        if sum(contraction(e) is not None for e in spec.equations) > 1:
            cost = None  # of fused matmuls the quick cost tells more: docs/benchmarks.md
        found = in_bulk(spec, machine, sizes, seed(spec, machine, sizes, rounded, cost))
        for more in (with_taps, with_vectors, with_passes):
            found = more(spec, machine, sizes, found)
        return found

    def alternatives(self, spec: Spec, machine: Machine, sizes: Sizes) -> tuple[Schedule, ...]:
        """Those with roles; of other algorithms the seed is the best, by an estimate that tells them apart."""
        if not machine.renders("roles") or "bulk" not in machine.rendered_engines:
            return ()
        first = seed(spec, machine, sizes)
        kinds = (of_windows_in_blocks, with_roles, for_warpgroups, of_packed_windows)
        return tuple(dict.fromkeys(s for kind in kinds for s in kind(spec, machine, sizes, first)))

    def seeds_like(
        self, kind: str, spec: Spec, machine: Machine, sizes: Sizes, first: Schedule
    ) -> tuple[Schedule, ...]:
        """Of steps of a recurrence one launch, or the same; of matmuls and convolutions in bulk."""
        if kind == "recurrence":
            return (*in_one_launch(spec, machine, sizes, first), first)
        return _IN_BULK[kind](spec, machine, sizes, first)


_IN_BULK = {"epilogue": with_epilogue, "window": of_windows, "turns": in_turns}
GPU = Gpu()
