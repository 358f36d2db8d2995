"""The machine class of processing elements, each of which computes one tile of the grid."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ir.lower.launches import Segment, Tiling
from ir.machine import Cost, Machine
from ir.nest.nest import Launch, LoopNest, Value
from ir.schedule import Decision, Schedule
from ir.spec import Spec
from ir.workload import Sizes
from machines.tiles import footprint, quick_cost
from machines.tiles.seed import alternatives, seed


@dataclass(frozen=True, slots=True)
class Tiles:
    """The machine class of processing elements; see `ir.machine.MachineClass`."""

    name: str = "tiles"
    tables: tuple[str, ...] = ()
    word: str = "tiles"
    on_chip: str = "local"
    verbs: frozenset[str] = frozenset({"multicast", "keep"})
    largest_tile: int = 1024
    buffers_results: bool = True
    copies_fill_grid: bool = False
    matmul_needs_columns: bool = False
    boxes_are_powers_of_two: bool = False
    box_steps: int = 0
    box_dimensions: int = 0
    box_slot_bytes: int = 1
    block_per_tile: bool = False
    even_grids: bool = True
    channels_last: bool = False

    def check(self, machine: Machine) -> None:
        """Does nothing: the class has no table of its own."""

    def scaled_block(self, machine: Machine, dtype: str) -> int:
        """0: the matrix engine takes no scales."""
        return 0

    def check_decision(self, decision: Decision, machine: Machine) -> None:
        """Does nothing: no verb of the class depends on the machine's figures."""

    def require_decided(
        self, launches: Sequence[Launch], schedule: Schedule, machine: Machine, sizes: Sizes
    ) -> None:
        """Does nothing: the class has no such decision."""

    def matmul_changes(
        self, spec: Spec, schedule: Schedule, machine: Machine
    ) -> Iterator[tuple[Decision | None, Decision | None]]:
        """Yields nothing: a processing element has one matrix engine."""
        yield from ()

    def single_indices(self, spec: Spec) -> Collection[str]:
        """Empty: a processing element takes rows of any length."""
        return ()

    def launch_fields(
        self, schedule: Schedule, segment: Segment, tilings: Mapping[str, Tiling]
    ) -> Mapping[str, Any]:
        """Empty: the class has no verb on a launch as a whole."""
        return {}

    def require_met(
        self,
        schedule: Schedule,
        parts: Sequence[Segment],
        cut: Sequence[Mapping[str, Tiling]],
    ) -> None:
        """Does nothing: the class has no such decision."""

    def launch_changes(
        self, spec: Spec, schedule: Schedule, machine: Machine
    ) -> Iterator[tuple[Decision | None, Decision | None]]:
        """Empty."""
        return iter(())

    def on_chip_bytes(self, launch: Launch, machine: Machine, sizes: Sizes) -> int:
        """Bytes of local memory: all values, and the temporaries between the steps of maps."""
        return footprint.local_bytes(launch, sizes)

    def on_chip_parts(self, launch: Launch, machine: Machine, sizes: Sizes) -> Mapping[str, int]:
        """Bytes of local memory of each value."""
        return footprint.local_parts(launch, sizes)

    def register_bytes(self, launch: Launch, sizes: Sizes) -> int:
        """0: there are no registers."""
        return 0

    def register_parts(self, launch: Launch, sizes: Sizes) -> Mapping[str, int]:
        """Empty: there are no registers."""
        return {}

    def space_of(self, value: Value, launch: Launch) -> str:
        """The memory space of every value: local memory."""
        return "local"

    def exchanges(self, launch: Launch) -> int:
        """0: a processing element works alone on its tile."""
        return 0

    def holds(self, nest: LoopNest, machine: Machine, sizes: Sizes) -> bool:
        """True: nothing spills."""
        return True

    def quick_us(self, nest: LoopNest, machine: Machine, sizes: Sizes) -> float:
        """The quick cost of a nest in microseconds."""
        return quick_cost.quick_us(nest, machine, sizes)

    def seed(
        self,
        spec: Spec,
        machine: Machine,
        sizes: Sizes,
        rounded: Collection[str],
        cost: Cost | None,
    ) -> Schedule:
        """The best of some tilings by the quick cost. Ignores `rounded` and `cost`."""
        return seed(spec, machine, sizes)

    def alternatives(self, spec: Spec, machine: Machine, sizes: Sizes) -> tuple[Schedule, ...]:
        """The best schedules of other algorithms."""
        return alternatives(spec, machine, sizes)

    def seeds_like(
        self, kind: str, spec: Spec, machine: Machine, sizes: Sizes, first: Schedule
    ) -> tuple[Schedule, ...]:
        """Empty."""
        return ()


TILES = Tiles()
