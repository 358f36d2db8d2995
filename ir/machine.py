"""A machine: the numbers of a target that schedules depend on, and its machine class."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ir.schedule import Decision, Schedule
from ir.spec import Spec
from ir.workload import Sizes

ATOMICS = ("f32", "i32")  # dtypes with an atomic addition, by default
MOST_THREADS = 1024  # of a thread block, by default
# Verbs that a loop nest only notes, so that each backend has to render them itself. All other verbs
# change the statements of the nest, and so the source of every backend.
NOTED = (
    *("multicast", "keep", "pipeline", "copy", "rasterize", "threads", "persistent", "specialize"),
    *(
        "stream_k",
        "cooperative",
        "registers",
        "warps",
        "instruction",
        "overlap",
        "unroll_loop",
        "cache",
        "cluster",
        "swizzle",
        "pad",
        "epilogue",
        "roles",
        "pingpong",
    ),
)
# Asynchronous copies to shared memory that bypass registers: `bulk` copies boxes (TMA), `lds` a few
# bytes per thread.
DIRECT = "lds"
ENGINES = ("bulk", DIRECT)
# Copies by threads through registers: a window that reads at shifted positions share is loaded
# once. It needs no hardware engine.
WINDOW = "window"
# What moves a tensor: loads and stores of threads, asynchronous copies, the DMA engine.
MOVES = ("access", "copy", "bulk")


@dataclass(frozen=True, slots=True)
class Space:
    """A memory."""

    bytes: int  # of one processor for shared, local and register; of the chip for global
    bytes_per_second: float = 0.0  # of the chip; 0 if it is no bound of its own
    sector: int = 1  # bytes of the shortest contiguous run that moves at full rate


@dataclass(frozen=True, slots=True)
class Unit:
    """An arithmetic unit."""

    flops: Mapping[str, float]  # operations a second of the whole chip, by operand dtype
    step: tuple[int, ...] = ()  # the multiples (M, N, K) that fill a matrix unit
    reads: str = "register"  # the memory space that supplies its operands


@dataclass(frozen=True, slots=True)
class Rendering:
    """What the backend that serves a machine renders of a schedule; by default all of it."""

    backend: str = ""
    verbs: tuple[str, ...] = NOTED  # of these, those that it renders
    stages_of: str = "tensor"  # what has its own number of pipeline stages: "tensor" or "loop"
    hints_of: tuple[str, ...] = MOVES  # of `MOVES`, those that take a cache hint
    engines: tuple[str, ...] = ENGINES  # of the copies that it emits; also `WINDOW`
    scales: bool = False  # whether its matmuls can use block-scaled instructions
    # Whether loop-invariant operands are computed, or converted, once before the loop.
    hoists: bool = False
    parts: bool = True  # whether kernels can store parts of larger tensors


Nest = Any  # an `ir.nest` LoopNest, and one of its Launches: `ir.nest` imports this module
Launch = Any
Value = Any
Segment = Any  # of `ir.lower`: the equations of a launch, and how an index of it is tiled
Tiling = Any
Cost = Callable[[Nest], float]  # microseconds


class MachineClass(Protocol):
    """What machines of one architecture have in common: facts, what fits, the cost, the seed.

    Shared code asks these facts. It never asks which class a machine has.
    """

    @property
    def name(self) -> str:
        """The name in target files."""

    @property
    def word(self) -> str:
        """The word for such machines in documents of the knowledge base."""

    @property
    def on_chip(self) -> str:
        """The memory space that holds tiles: `shared` (of a thread block) or `local` (of a PE)."""

    @property
    def verbs(self) -> frozenset[str]:
        """The verbs that edits propose for this class and not for every class."""

    @property
    def largest_tile(self) -> int:
        """The largest tile that edits propose."""

    @property
    def buffers_results(self) -> bool:
        """Whether stored and accumulated tensors have pipeline stages, and not only loaded ones."""

    @property
    def copies_fill_grid(self) -> bool:
        """Whether a launch without reductions puts all its tiles on the grid."""

    @property
    def matmul_needs_columns(self) -> bool:
        """Whether the matrix unit takes no batch of matrix-vector products."""

    @property
    def boxes_are_powers_of_two(self) -> bool:
        """Whether the DMA engine moves only tiles whose sizes are powers of two."""

    @property
    def box_steps(self) -> int:
        """The largest stride of a box along a dimension other than the last.

        If it is 0, the engine also takes no windows, whose origin depends on several indices.
        """

    @property
    def box_dimensions(self) -> int:
        """The most dimensions of a tensor whose boxes the DMA engine moves; 0: any number."""

    @property
    def box_slot_bytes(self) -> int:
        """Each tile of a pipelined bulk copy is a multiple of this number of bytes."""

    @property
    def block_per_tile(self) -> bool:
        """Whether each grid tile runs the prologue again, unless the launch is persistent."""

    @property
    def even_grids(self) -> bool:
        """Whether edits propose tiles that are no powers of two, so that all processors have
        equally many."""

    @property
    def channels_last(self) -> bool:
        """Whether convolutions of a network are faster with all tensors channels last."""

    @property
    def tables(self) -> tuple[str, ...]:
        """The class's own tables of a target file."""

    def check(self, machine: Machine) -> None:
        """Raises KernelError if the class's own table of a target file is wrong."""

    def scaled_block(self, machine: Machine, dtype: str) -> int:
        """Like `Machine.scaled_block`, whatever the backend renders."""

    def check_decision(self, decision: Decision, machine: Machine) -> None:
        """Raises KernelError if a decision by a verb of the class needs what the machine lacks."""

    def require_decided(
        self, launches: Sequence[Launch], schedule: Schedule, machine: Machine, sizes: Sizes
    ) -> None:
        """Raises KernelError at a decision of the class that does not suit the tiles that it
        concerns."""

    def matmul_changes(
        self, spec: Spec, schedule: Schedule, machine: Machine
    ) -> Iterator[tuple[Decision | None, Decision | None]]:
        """Every single change of how the matrix unit computes a matmul, old and new."""

    def single_indices(self, spec: Spec) -> Collection[str]:
        """The indices that a plain schedule iterates over one at a time."""

    def launch_fields(
        self, schedule: Schedule, segment: Segment, tilings: Mapping[str, Tiling]
    ) -> Mapping[str, Any]:
        """Decisions by verbs of the class on a launch as a whole: fields of `ir.nest`'s Launch.

        Raises KernelError if two decisions disagree.
        """

    def require_met(
        self,
        schedule: Schedule,
        parts: Sequence[Segment],
        cut: Sequence[Mapping[str, Tiling]],
    ) -> None:
        """Raises KernelError at a decision on a launch as a whole that applies to no launch."""

    def launch_changes(
        self, spec: Spec, schedule: Schedule, machine: Machine
    ) -> Iterator[tuple[Decision | None, Decision | None]]:
        """Every single change of such decisions, old and new (None if there is none), in a fixed
        order."""

    def on_chip_bytes(self, launch: Launch, machine: Machine, sizes: Sizes) -> int:
        """Bytes of the space `on_chip` that one tile of a launch takes."""

    def on_chip_parts(self, launch: Launch, machine: Machine, sizes: Sizes) -> Mapping[str, int]:
        """The same bytes, by value."""

    def register_bytes(self, launch: Launch, sizes: Sizes) -> int:
        """Bytes of registers that one tile of a launch takes at least."""

    def register_parts(self, launch: Launch, sizes: Sizes) -> Mapping[str, int]:
        """Bytes of each value that is held in registers."""

    def space_of(self, value: Value, launch: Launch) -> str:
        """The memory space that holds a value of a launch."""

    def exchanges(self, launch: Launch) -> int:
        """The number of values that the threads of a block exchange through shared memory."""

    def holds(self, nest: Nest, machine: Machine, sizes: Sizes) -> bool:
        """Whether a nest that fits runs without spills."""

    def quick_us(self, nest: Nest, machine: Machine, sizes: Sizes) -> float:
        """A first estimate of a nest's time, to rank schedules of one spec."""

    def seed(
        self,
        spec: Spec,
        machine: Machine,
        sizes: Sizes,
        rounded: Collection[str],
        cost: Cost | None,
    ) -> Schedule:
        """The schedule that a search starts from; see `ir.autoschedule`."""

    def alternatives(self, spec: Spec, machine: Machine, sizes: Sizes) -> tuple[Schedule, ...]:
        """Further schedules that a search starts from, which use other algorithms than `seed`."""

    def seeds_like(
        self, kind: str, spec: Spec, machine: Machine, sizes: Sizes, first: Schedule
    ) -> tuple[Schedule, ...]:
        """Schedules for a backend whose kernels are of one kind, for use in networks of another
        backend.

        They resemble the other backend's schedule. None for kernels of another kind.

        kind: of `KINDS` of `backends/manifest.py`.
        """


@dataclass(frozen=True, slots=True)
class Machine:
    """A target's numbers."""

    name: str
    title: str
    backends: tuple[str, ...]
    # `grid`: tiles that run at once. On machines whose thread blocks have threads, `thread`: the
    #     most threads of a block, and `warp`: the threads of a warp.
    levels: Mapping[str, int]
    spaces: Mapping[str, Space]
    units: Mapping[str, Unit]
    model: MachineClass = field(repr=False)  # follows from the figures, so no key needs it
    launch_us: float = 0.0  # cost of a launch
    step_us: float = 0.0  # latency from a load to the result that needs it, without overlap
    engines: tuple[str, ...] = ()  # of `ENGINES`, those of the chip
    # The most elements of a bulk copy's box along one dimension; 0 for no limit.
    box: int = 0
    atomics: tuple[str, ...] = ATOMICS  # dtypes that memory can add to
    # The tables of backends and of the machine class, by name.
    details: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    rendering: Rendering = Rendering()  # by its backend

    @property
    def parallel(self) -> int:
        """The number of grid tiles that run at once."""
        return self.levels["grid"]

    @property
    def stages_of_loops(self) -> bool:
        """Whether all loads of a loop have the same number of pipeline stages."""
        return self.rendering.stages_of == "loop"

    @property
    def rendered_engines(self) -> tuple[str, ...]:
        """The engines for which the backend emits copies."""
        return tuple(e for e in (*self.engines, WINDOW) if e in self.rendering.engines)

    def renders(self, verb: str) -> bool:
        """Whether decisions by a verb change what the backend emits."""
        return verb not in NOTED or verb in self.rendering.verbs

    @property
    def reads_shared(self) -> bool:
        """Whether the matrix unit reads operands from shared memory, not from registers."""
        return "matrix" in self.units and self.units["matrix"].reads == "shared"

    @property
    def threads(self) -> int:
        """The most threads of a thread block."""
        return self.levels.get("thread", MOST_THREADS)

    @property
    def warp(self) -> int:
        """Threads of a warp, which run in lockstep; a thread block has a whole number of warps."""
        return self.levels.get("warp", 1)

    @property
    def on_chip(self) -> str:
        """The memory space that holds tiles, see `MachineClass.on_chip`."""
        return self.model.on_chip

    @property
    def on_chip_bytes(self) -> int:
        """Bytes of this space that one tile can use."""
        return self.spaces[self.on_chip].bytes

    @property
    def bandwidth(self) -> float:
        """Bytes a second from and to global memory."""
        return self.spaces["global"].bytes_per_second

    @property
    def sector(self) -> int:
        """Bytes of the shortest contiguous run of global memory that moves at full rate."""
        return self.spaces["global"].sector

    def peak(self, unit: str, dtype: str) -> float:
        """Operations a second of a unit on operands of a dtype; those of f32 if the dtype is not
        listed."""
        flops = self.units[unit].flops
        return flops.get(dtype, flops.get("f32", 0.0))

    def scaled_block(self, dtype: str) -> int:
        """Elements along K that share a scale in matrix instructions on operands of a dtype; 0 if
        there are none."""
        return self.model.scaled_block(self, dtype) if self.rendering.scales else 0

    def has_matrix(self, dtype: str) -> bool:
        """Whether the matrix unit takes operands of a dtype."""
        return "matrix" in self.units and dtype in self.units["matrix"].flops
