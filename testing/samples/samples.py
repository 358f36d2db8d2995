"""Samples for tests: two small machines, the library's kernels, and schedules from lines."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from ir.lower.lower import lower
from ir.machine import Machine, Space, Unit
from ir.nest.nest import Loop, LoopNest, Statement
from ir.parse.parse import parse_spec, parse_workload
from ir.parse.schedule import parse_schedule
from ir.schedule import Schedule
from ir.spec import Spec
from ir.workload import LIBRARY, Sizes, Workload
from machines.gpu.gpu import GPU
from machines.tiles.tiles import TILES

_IR = Path(__file__).parents[2] / "ir"
KERNELS = tuple(sorted(f.stem for f in LIBRARY.glob("*.kir")))
RECURRENT_SPECS = _IR / "testdata" / "recurrent"
RECURRENT = tuple(sorted(f.stem for f in RECURRENT_SPECS.glob("*.kir")))

_GLOBAL = Space(bytes=2**30, bytes_per_second=1e9)
_MATRIX = Unit({"f16": 8e9, "bf16": 8e9, "f32": 1e9}, step=(4, 4, 4))
SMALL = Machine(  # its tiles lie in local memory
    name="small",
    title="4 processing elements, 256 KiB each",
    backends=(),
    levels={"grid": 4},
    spaces={"global": _GLOBAL, "local": Space(2**18)},
    units={"matrix": _MATRIX, "vector": Unit({"f32": 2e9}), "special": Unit({"f32": 1e9})},
    model=TILES,
    launch_us=1.0,
    step_us=0.5,
)
WITH_REGISTERS = Machine(  # computed tiles live in registers
    name="with_registers",
    title="4 processing elements, 64 KiB each, and registers",
    backends=(),
    levels={"grid": 4},
    spaces={"global": _GLOBAL, "shared": Space(2**16), "register": Space(2**16)},
    units={"matrix": _MATRIX, "vector": Unit({"f32": 2e9})},
    model=GPU,
)
WITH_TF32 = replace(  # its matrix unit takes tf32, and more fits
    WITH_REGISTERS,
    name="with_tf32",
    spaces={"global": _GLOBAL, "shared": Space(2**20), "register": Space(2**20)},
    units={
        "matrix": Unit({"f16": 8e9, "bf16": 8e9, "tf32": 4e9, "f32": 1e9}, step=(4, 4, 4)),
        "vector": Unit({"f32": 2e9}),
    },
)

WITH_THREADS = Machine(  # the proportions of a large one
    name="with_threads",
    title="128 processing elements, 224 KiB each, programs of up to 1024 threads",
    backends=(),
    levels={"grid": 128, "thread": 1024, "warp": 32},
    spaces={
        "global": Space(bytes=2**37, bytes_per_second=4e12, sector=32),
        "cache": Space(bytes=2**26, bytes_per_second=6e12),
        "shared": Space(7 * 2**15),
        "register": Space(2**18),
    },
    units={
        "matrix": Unit({"f16": 1e15, "bf16": 1e15, "f32": 6e13}, (16, 16, 16), reads="shared"),
        "vector": Unit({"f32": 6e13}),
        "special": Unit({"f32": 4e12}),
    },
    model=GPU,
    launch_us=3.0,
    step_us=0.8,
    engines=("bulk",),
    box=256,
)

_MATRIX_DTYPES = {
    "f8e4m3": 2e15,
    "f8e5m2": 2e15,
    "f16": 1e15,
    "bf16": 1e15,
    "tf32": 5e14,
    "f32": 6e13,
}
WITH_INSTRUCTIONS = replace(  # its matrix unit takes all that matrix instructions multiply
    WITH_THREADS,
    name="with_instructions",
    units={**WITH_THREADS.units, "matrix": Unit(_MATRIX_DTYPES, (16, 16, 16), reads="shared")},
)


@lru_cache
def workload(name: str) -> Workload:
    """A kernel of the library, or one with a recurrence."""
    folder = RECURRENT_SPECS if name in RECURRENT else LIBRARY
    return parse_workload((folder / f"{name}.kir").read_text(encoding="utf-8"), name)


def spec_of(*equations: str, inputs: str = "x: f32[M, K]", result: str = "f32[M, K]") -> Spec:
    """The spec `f` of some equations, the last of which defines `y`."""
    lines = "".join(f"    {e}\n" for e in equations)
    return parse_spec(f'def f({inputs}) -> {result}:\n    """F."""\n{lines}    return y\n')


def decisions(spec: Spec, *lines: str) -> Schedule:
    """The schedule of some decisions, one a line."""
    return parse_schedule("\n".join((f"schedule({spec.name})", *lines)) + "\n")


def lowered(
    name: str | Spec, *lines: str, sizes: Sizes | None = None, machine: Machine = SMALL
) -> LoopNest:
    """The nest of a library's kernel (at its last check sizes) or of a spec."""
    spec = workload(name).spec if isinstance(name, str) else name
    if sizes is None:
        sizes = workload(name).checks[-1]
    return lower(spec, decisions(spec, *lines), machine, sizes)


def statements(nest: LoopNest, kind: type[Statement], value: str = "") -> list[Statement]:
    """All statements of a sort, of one value where it is named, in order."""
    found = [s for launch in nest.launches for s in launch.statements() if isinstance(s, kind)]
    return [s for s in found if not value or getattr(s, "value", "") == value]


def outline(block: tuple[Statement, ...]) -> list[object]:
    """A block as words: `Load x`, and a list for a loop, its index first."""
    made: list[object] = []
    for s in block:
        if isinstance(s, Loop):
            made.append([s.index, *outline(s.body)])
        else:
            made.append(f"{type(s).__name__} {getattr(s, 'tensor', '') or getattr(s, 'value', '')}")
    return made
