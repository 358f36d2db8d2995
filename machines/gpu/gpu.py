"""The machine class of GPUs: the threads of a block distribute a tile over their registers."""

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
    """The machine class of GPUs; see `ir.machine.MachineClass`."""

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
    box_steps: int = 8  # largest element stride of a box (CUDA driver API)
    box_dimensions: int = 5  # dimensions of a TMA box (CUDA driver API)
    box_slot_bytes: int = 128  # alignment of a TMA box in shared memory
    block_per_tile: bool = True
    even_grids: bool = False
    channels_last: bool = True

    def check(self, machine: Machine) -> None:
        """Raises KernelError where the table `[gpu]` contradicts the chip's other figures."""
        if "gpu" in machine.details:
            facts.check(machine)

    def scaled_block(self, machine: Machine, dtype: str) -> int:
        """Elements that share a scale in the chip's matrix instructions of a dtype; 0 where they have no scales."""
        known = (i for i in matmuls.instructions(machine) if i.a.dtype == i.b.dtype == dtype)
        return max((i.block for i in known), default=0)

    def check_decision(self, decision: Decision, machine: Machine) -> None:
        """Raises KernelError where a decision asks for what the machine lacks."""
        limits.check_decision(decision, machine)
        shared_rows.check_decision(decision)
        matmuls.check_decision(decision, machine)
        clusters.check_decision(decision, machine)

    def require_decided(
        self, launches: Sequence[Launch], schedule: Schedule, machine: Machine, sizes: Sizes
    ) -> None:
        """Raises KernelError at a decision on a matmul that does not fit its operands or tile, and
        at a cluster whose blocks share nothing."""
        matmuls.require_decided(launches, schedule, machine, sizes)
        clusters.require_decided(launches, schedule)

    def matmul_changes(
        self, spec: Spec, schedule: Schedule, machine: Machine
    ) -> Iterator[tuple[Decision | None, Decision | None]]:
        """Other matrix instructions, warp partitions of the result, and shared memory layouts of operands."""
        yield from matmuls.changes(spec, schedule, machine)
        yield from shared_rows.changes(spec, schedule, machine)

    def single_indices(self, spec: Spec) -> Collection[str]:
        """Filter taps. A tile of several taps would be mostly padding to a power of two."""
        return roles(spec).taps

    def launch_fields(
        self, schedule: Schedule, segment: Segment, tilings: Mapping[str, Tiling]
    ) -> Mapping[str, Any]:
        """Threads, rasterization, persistence, roles and other fields of a launch."""
        return grid_mapping.launch_fields(schedule, segment, tilings)

    def require_met(
        self,
        schedule: Schedule,
        parts: Sequence[Segment],
        cut: Sequence[Mapping[str, Tiling]],
    ) -> None:
        """Raises KernelError at a decision on a launch as a whole that applies to no launch."""
        grid_mapping.require_met(schedule, parts, cut)

    def launch_changes(
        self, spec: Spec, schedule: Schedule, machine: Machine
    ) -> Iterator[tuple[Decision | None, Decision | None]]:
        """Other rasterization orders, numbers of threads, persistence, and epilogues."""
        yield from launch_changes(spec, schedule, machine)
        yield from shared_rows.epilogue_changes(spec, schedule, machine)

    def on_chip_bytes(self, launch: Launch, machine: Machine, sizes: Sizes) -> int:
        """Bytes of shared memory: matmul operands, layout conversions and bulk copies."""
        return shared_memory.shared_bytes(launch, machine, sizes)

    def on_chip_parts(self, launch: Launch, machine: Machine, sizes: Sizes) -> Mapping[str, int]:
        """Bytes of shared memory of each value."""
        return shared_memory.shared_parts(launch, machine, sizes)

    def register_bytes(self, launch: Launch, sizes: Sizes) -> int:
        """Bytes of registers: the largest value plus all loop-carried values."""
        return registers.register_bytes(launch, sizes)

    def register_parts(self, launch: Launch, sizes: Sizes) -> Mapping[str, int]:
        """Bytes of each value in registers, i.e. in neither shared nor only global memory."""
        return registers.register_parts(launch, sizes)

    def space_of(self, value: Value, launch: Launch) -> str:
        """The memory space of a value: "shared" for staged values, "global" for tables that are
        indexed, else "register"."""
        if value.name in tables(launch):
            return "global"
        return "shared" if value.name in shared_memory.staged_values(launch) else "register"

    def exchanges(self, launch: Launch) -> int:
        """The number of values that threads exchange through shared memory."""
        return len(shared_memory.staged_values(launch))

    def holds(self, nest: LoopNest, machine: Machine, sizes: Sizes) -> bool:
        """Whether no launch spills registers."""
        return quick_cost.holds(nest, machine, sizes)

    def quick_us(self, nest: LoopNest, machine: Machine, sizes: Sizes) -> float:
        """The quick cost of a nest in microseconds, from the work of its blocks and the occupancy."""
        return quick_cost.quick_us(nest, machine, sizes)

    def seed(
        self,
        spec: Spec,
        machine: Machine,
        sizes: Sizes,
        rounded: Collection[str],
        cost: Cost | None,
    ) -> Schedule:
        """The best of a few hundred schedules by the quick cost, or by `cost`; a large matmul uses bulk copies."""
        if sum(contraction(e) is not None for e in spec.equations) > 1:
            cost = None  # the quick cost ranks fused matmuls better: docs/benchmarks.md
        found = in_bulk(spec, machine, sizes, seed(spec, machine, sizes, rounded, cost))
        for more in (with_taps, with_vectors, with_passes):
            found = more(spec, machine, sizes, found)
        return found

    def alternatives(self, spec: Spec, machine: Machine, sizes: Sizes) -> tuple[Schedule, ...]:
        """Seeds with producer and consumer roles. Among other algorithm variants the seed is the
        best by the estimate, which can rank those."""
        if not machine.renders("roles") or "bulk" not in machine.rendered_engines:
            return ()
        first = seed(spec, machine, sizes)
        kinds = (of_windows_in_blocks, with_roles, for_warpgroups, of_packed_windows)
        return tuple(dict.fromkeys(s for kind in kinds for s in kind(spec, machine, sizes, first)))

    def seeds_like(
        self, kind: str, spec: Spec, machine: Machine, sizes: Sizes, first: Schedule
    ) -> tuple[Schedule, ...]:
        """Seeds of one kind: a recurrence in one launch, or a matmul or convolution with bulk copies."""
        if kind == "recurrence":
            return (*in_one_launch(spec, machine, sizes, first), first)
        return _IN_BULK[kind](spec, machine, sizes, first)


_IN_BULK = {"epilogue": with_epilogue, "window": of_windows, "turns": in_turns}
GPU = Gpu()
