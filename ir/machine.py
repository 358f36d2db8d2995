"""A machine: what a target offers a schedule, in numbers, and the class of such machines."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ir.schedule import Decision, Schedule
from ir.spec import Spec
from ir.workload import Sizes

ATOMICS = ("f32", "i32")  # that memory adds to, where a machine does not say
MOST_THREADS = 1024  # of one program, where a machine does not say
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
# What copies tensors past the registers: `bulk` boxes of them, `lds` a few bytes of each thread.
DIRECT = "lds"
ENGINES = ("bulk", DIRECT)
# Threads, through their registers, what loads at shifted places read once. No chip needs an engine for it.
WINDOW = "window"
# What moves a tensor: a thread's loads and stores, copies that run ahead, the DMA engine.
MOVES = ("access", "copy", "bulk")


@dataclass(frozen=True, slots=True)
class Space:
    """A memory."""

    bytes: int  # of one processor for shared, local and register; of the chip for global
    bytes_per_second: float = 0.0  # of the chip, 0 where it is not a bound of its own
    sector: int = 1  # bytes of the shortest contiguous run that moves at full rate


@dataclass(frozen=True, slots=True)
class Unit:
    """An arithmetic unit."""

    flops: Mapping[str, float]  # operations a second of the whole chip, by operand dtype
    step: tuple[int, ...] = ()  # the multiples (rows, columns, depth) that fill a matrix unit
    reads: str = "register"  # the space that its operands come from as it runs


@dataclass(frozen=True, slots=True)
class Rendering:
    """What the backend that serves a machine renders of a schedule; by default all of it."""

    backend: str = ""
    verbs: tuple[str, ...] = NOTED  # of these, those that it renders
    stages_of: str = "tensor"  # what has a number of pipeline stages of its own: "tensor", "loop"
    hints_of: tuple[str, ...] = MOVES  # of what moves tensors, what takes a hint to the caches
    engines: tuple[str, ...] = ENGINES  # that it has copies by; also `WINDOW`
    scales: bool = False  # whether it has matmuls whose instructions take scales of blocks
    # Whether an operand that a loop does not change is computed, or converted, once before the loop.
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
        """As a target file says it."""

    @property
    def word(self) -> str:
        """What documents of the knowledge base call such machines."""

    @property
    def on_chip(self) -> str:
        """The space in which tiles lie: `shared` (of a thread block) or `local` (of a PE)."""

    @property
    def verbs(self) -> frozenset[str]:
        """The verbs that edits propose here and not on machines of every class."""

    @property
    def largest_tile(self) -> int:
        """The largest tile that edits propose."""

    @property
    def buffers_results(self) -> bool:
        """Whether what is stored or accumulated has stages too, and not only what is loaded."""

    @property
    def copies_fill_grid(self) -> bool:
        """Whether a launch that reduces nothing puts all its tiles on the grid."""

    @property
    def matmul_needs_columns(self) -> bool:
        """Whether the matrix unit takes no batch of matrix-vector products."""

    @property
    def boxes_are_powers_of_two(self) -> bool:
        """Whether the DMA engine moves only tiles whose sizes are powers of two."""

    @property
    def box_steps(self) -> int:
        """How far apart the positions of a box may be along a dimension but the last; 0: boxes are no
        windows either, which begin where several indices say."""

    @property
    def box_dimensions(self) -> int:
        """The most dimensions of a tensor that the DMA engine moves a box of; 0: any number."""

    @property
    def box_slot_bytes(self) -> int:
        """Bytes that each tile of a pipelined bulk copy is a multiple of."""

    @property
    def block_per_tile(self) -> bool:
        """Whether each grid tile runs its prologue anew, unless the launch is persistent."""

    @property
    def even_grids(self) -> bool:
        """Whether edits propose tiles that are no powers of two, so that all processors have the same
        number of them."""

    @property
    def channels_last(self) -> bool:
        """Whether convolutions of a network take less time with the channels of all tensors last."""

    @property
    def tables(self) -> tuple[str, ...]:
        """The class's own tables of a target file."""

    def check(self, machine: Machine) -> None:
        """KernelError where the class's own table of a target file is wrong."""

    def scaled_block(self, machine: Machine, dtype: str) -> int:
        """See `Machine.scaled_block`, whatever the backend has."""

    def check_decision(self, decision: Decision, machine: Machine) -> None:
        """KernelError where a decision by a verb of the class asks for what the machine lacks."""

    def require_decided(
        self, launches: Sequence[Launch], schedule: Schedule, machine: Machine, sizes: Sizes
    ) -> None:
        """KernelError at a decision of the class that does not go with the tiles it is about."""

    def matmul_changes(
        self, spec: Spec, schedule: Schedule, machine: Machine
    ) -> Iterator[tuple[Decision | None, Decision | None]]:
        """Every single change of how the matrix unit computes a matmul, old and new."""

    def single_indices(self, spec: Spec) -> Collection[str]:
        """The indices that a plain schedule takes one at a time."""

    def launch_fields(
        self, schedule: Schedule, segment: Segment, tilings: Mapping[str, Tiling]
    ) -> Mapping[str, Any]:
        """What verbs of the class decide on a launch as a whole: fields of `ir.nest`'s Launch.
        KernelError where two decisions disagree."""

    def require_met(
        self,
        schedule: Schedule,
        parts: Sequence[Segment],
        cut: Sequence[Mapping[str, Tiling]],
    ) -> None:
        """KernelError at a decision on a launch as a whole that applies to no launch."""

    def launch_changes(
        self, spec: Spec, schedule: Schedule, machine: Machine
    ) -> Iterator[tuple[Decision | None, Decision | None]]:
        """Every single change of such decisions, old and new (None: not there), in a fixed order."""

    def on_chip_bytes(self, launch: Launch, machine: Machine, sizes: Sizes) -> int:
        """Bytes of the space `on_chip` that one tile of a launch takes."""

    def on_chip_parts(self, launch: Launch, machine: Machine, sizes: Sizes) -> Mapping[str, int]:
        """Of these, the bytes of each value."""

    def register_bytes(self, launch: Launch, sizes: Sizes) -> int:
        """Bytes of registers that one tile of a launch takes at the least."""

    def register_parts(self, launch: Launch, sizes: Sizes) -> Mapping[str, int]:
        """Bytes of each value that lies in registers."""

    def space_of(self, value: Value, launch: Launch) -> str:
        """The memory space that holds a value of a launch."""

    def exchanges(self, launch: Launch) -> int:
        """Values that the threads of a block exchange through shared memory."""

    def holds(self, nest: Nest, machine: Machine, sizes: Sizes) -> bool:
        """Whether a nest that fits runs without spills."""

    def quick_us(self, nest: Nest, machine: Machine, sizes: Sizes) -> float:
        """A first estimate of a nest's time, to rank schedules of one spec by."""

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
        """Schedules that a search starts from too, of other algorithms than that of `seed`."""

    def seeds_like(
        self, kind: str, spec: Spec, machine: Machine, sizes: Sizes, first: Schedule
    ) -> tuple[Schedule, ...]:
        """Schedules for a backend that makes kernels of a kind in networks of another one, like the
        other's; none where the kernel is of another kind. kind: of `KINDS` of `backends/manifest.py`."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A target's numbers."""

    name: str
    title: str
    backends: tuple[str, ...]
    # `grid`: tiles that run at once. Where thread blocks have threads, `thread`: the most of a
    # block, and `warp`: the threads of a warp.
    levels: Mapping[str, int]
    spaces: Mapping[str, Space]
    units: Mapping[str, Unit]
    model: MachineClass = field(repr=False)  # follows from the figures, so no key needs it
    launch_us: float = 0.0  # what a launch costs
    step_us: float = 0.0  # from a load to the result that needs it, when nothing overlaps
    engines: tuple[str, ...] = ()  # of `ENGINES`, those of the chip
    # The most elements of such a box along one dimension, 0 for no limit
    box: int = 0
    atomics: tuple[str, ...] = ATOMICS  # dtypes that memory adds to
    # The tables of backends and of the machine class, by name
    details: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    rendering: Rendering = Rendering()  # by its backend

    @property
    def parallel(self) -> int:
        """How many grid tiles run at once."""
        return self.levels["grid"]

    @property
    def stages_of_loops(self) -> bool:
        """Whether all loads of a loop have the same number of pipeline stages."""
        return self.rendering.stages_of == "loop"

    @property
    def rendered_engines(self) -> tuple[str, ...]:
        """The engines that the backend has copies by."""
        return tuple(e for e in (*self.engines, WINDOW) if e in self.rendering.engines)

    def renders(self, verb: str) -> bool:
        """Whether decisions of a verb change what the backend emits."""
        return verb not in NOTED or verb in self.rendering.verbs

    @property
    def reads_shared(self) -> bool:
        """Whether the matrix unit reads operands from shared memory, not from registers."""
        return "matrix" in self.units and self.units["matrix"].reads == "shared"

    @property
    def threads(self) -> int:
        """The most threads that one program may have."""
        return self.levels.get("thread", MOST_THREADS)

    @property
    def warp(self) -> int:
        """Threads that go in step: a program has a whole number of waves."""
        return self.levels.get("warp", 1)

    @property
    def on_chip(self) -> str:
        """The space in which tiles lie, see `MachineClass.on_chip`."""
        return self.model.on_chip

    @property
    def on_chip_bytes(self) -> int:
        """Bytes of this space that one tile may use."""
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
        """Operations a second of a unit on operands of a dtype; f32's where it has none."""
        flops = self.units[unit].flops
        return flops.get(dtype, flops.get("f32", 0.0))

    def scaled_block(self, dtype: str) -> int:
        """Elements along K that share a scale in matrix instructions on operands of a dtype; 0 where
        none takes scales."""
        return self.model.scaled_block(self, dtype) if self.rendering.scales else 0

    def has_matrix(self, dtype: str) -> bool:
        """Whether the matrix unit takes operands of a dtype."""
        return "matrix" in self.units and dtype in self.units["matrix"].flops
