"""A machine: what a target offers a schedule, in numbers; made from a target's table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from ir.errors import KernelError
from ir.spec import DTYPES

LEVELS = ("grid", "lane", "wave", "loop")
SPACES = ("global", "cache", "scratch", "register")  # a cache is not scheduled, only costed
UNITS = ("matrix", "vector", "special")
ENGINES = ("bulk",)
ATOMICS = ("f32", "i32")  # that memory adds to, where a machine does not say
MOST_LANES = 1024  # of one program, where a machine does not say


@dataclass(frozen=True, slots=True)
class Space:
    """A memory. bytes: of one tile processor for scratch and register, of the chip for
    global.  bytes_per_second: of the chip, 0 where it is not a bound of its own.  granule:
    bytes of the shortest contiguous run that moves at full rate."""

    bytes: int
    bytes_per_second: float = 0.0
    granule: int = 1


@dataclass(frozen=True, slots=True)
class Unit:
    """An arithmetic unit. flops: operations a second of the whole chip, by operand dtype.

    step: the multiples (rows, columns, depth) that fill a matrix unit.  reads: the space that its
    operands come from as it runs.
    """

    flops: Mapping[str, float]
    step: tuple[int, ...] = ()
    reads: str = "register"


@dataclass(frozen=True, slots=True)
class Machine:
    """A target's numbers.

    levels: `grid`, how many tiles run at once; `lane`, how many lanes one program may have at
    most, and `wave`, how many of them go in step, where programs have lanes.  engines: `bulk`,
    where boxes of tensors are moved beside the programs.  box: elements that such a box may have
    along one dimension, 0 where any number will do.  atomics: dtypes that memory adds to.
    launch_us: what a launch costs.  step_us: from a load to the result that needs it, when nothing
    overlaps.  details: what only a backend reads, by backend.
    """

    name: str
    title: str
    backends: tuple[str, ...]
    levels: Mapping[str, int]
    spaces: Mapping[str, Space]
    units: Mapping[str, Unit]
    launch_us: float = 0.0
    step_us: float = 0.0
    engines: tuple[str, ...] = ()
    box: int = 0
    atomics: tuple[str, ...] = ATOMICS
    details: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def parallel(self) -> int:
        """How many grid tiles run at once."""
        return self.levels["grid"]

    @property
    def has_registers(self) -> bool:
        """Whether computed tiles live in registers, which the lanes of a program share out."""
        return "register" in self.spaces

    @property
    def reads_scratch(self) -> bool:
        """Whether the matrix unit takes operands out of scratch, not out of registers."""
        return "matrix" in self.units and self.units["matrix"].reads == "scratch"

    @property
    def lanes(self) -> int:
        """The most lanes that one program may have."""
        return self.levels.get("lane", MOST_LANES)

    @property
    def wave(self) -> int:
        """Lanes that go in step: a program has a whole number of waves."""
        return self.levels.get("wave", 1)

    @property
    def scratch_bytes(self) -> int:
        """Bytes of scratch that one tile may use."""
        return self.spaces["scratch"].bytes

    @property
    def bandwidth(self) -> float:
        """Bytes a second from and to global memory."""
        return self.spaces["global"].bytes_per_second

    @property
    def granule(self) -> int:
        """Bytes of the shortest contiguous run of global memory that moves at full rate."""
        return self.spaces["global"].granule

    def peak(self, unit: str, dtype: str) -> float:
        """Operations a second of a unit on operands of a dtype; f32's where it has none."""
        flops = self.units[unit].flops
        return flops.get(dtype, flops.get("f32", 0.0))

    def has_matrix(self, dtype: str) -> bool:
        """Whether the matrix unit takes operands of a dtype."""
        return "matrix" in self.units and dtype in self.units["matrix"].flops


def machine(table: Mapping[str, Any], where: str = "") -> Machine:
    """A machine from the table of a target file; KernelError names a missing or wrong field."""
    read = _Reader(table, where)
    spaces = {
        name: Space(
            bytes=read.number(f"spaces.{name}.bytes", int),
            bytes_per_second=read.number(f"spaces.{name}.bytes_per_second", float, default=0.0),
            granule=read.number(f"spaces.{name}.granule", int, default=1),
        )
        for name in read.names("spaces", SPACES, ("global", "scratch"))
    }
    if not spaces["global"].bytes_per_second:
        raise read.fault("spaces.global.bytes_per_second", "is missing")
    units = {
        name: Unit(
            flops=read.rates(f"units.{name}.flops"),
            step=tuple(read.get(f"units.{name}.step", list, default=[])),
            reads=read.get(f"units.{name}.reads", str, default="register"),
        )
        for name in read.names("units", UNITS, ("vector",))
    }
    levels = {
        name: read.number(f"levels.{name}", int)
        for name in read.names("levels", LEVELS, ("grid",))
    }
    known = ("name", "title", "backends", "levels", "spaces", "units", "engines", "box",
             "atomics", "overheads")  # fmt: skip
    return Machine(
        name=read.get("name", str),
        title=read.get("title", str),
        backends=tuple(read.get("backends", list)),
        levels=levels,
        spaces=spaces,
        units=units,
        engines=read.words("engines", ENGINES),
        box=read.number("box", int, default=0),
        atomics=read.words("atomics", tuple(DTYPES), ATOMICS),
        launch_us=read.number("overheads.launch_us", float, default=0.0),
        step_us=read.number("overheads.step_us", float, default=0.0),
        details={k: v for k, v in table.items() if k not in known},
    )


class _Reader:
    """Looks fields up by their dotted path and says which one is at fault."""

    def __init__(self, table: Mapping[str, Any], where: str):
        self.table = table
        self.where = where

    def fault(self, path: str, what: str, allowed: str = "") -> KernelError:
        return KernelError(
            f"field `{path}` {what}",
            where=self.where,
            allowed=allowed,
            hint="docs/add_a_chip.md lists the fields of a target file",
        )

    def get(self, path: str, kind: type | tuple[type, ...], default: Any = None) -> Any:
        node: Any = self.table
        for part in path.split("."):
            if not isinstance(node, Mapping) or part not in node:
                if default is not None:
                    return default
                raise self.fault(path, "is missing")
            node = node[part]
        if not isinstance(node, kind) or isinstance(node, bool):
            names = kind.__name__ if isinstance(kind, type) else "number"
            raise self.fault(path, f"is {node!r}", f"a {names}")
        return node

    def number(self, path: str, kind: type, default: Any = None) -> Any:
        found = self.get(path, (int, float), default)
        whole = kind is not int or (isfinite(found) and int(found) == found)
        if not isfinite(found) or found < 0 or not whole:
            raise self.fault(path, f"is {found!r}", "a positive number")
        if found == 0 and default is None:
            raise self.fault(path, "is 0", "a positive number")
        return kind(found)

    def names(self, path: str, known: tuple[str, ...], needed: tuple[str, ...]) -> list[str]:
        found = list(self.get(path, Mapping))
        for name in found:
            if name not in known:
                raise self.fault(f"{path}.{name}", "is not known", ", ".join(known))
        for name in needed:
            if name not in found:
                raise self.fault(f"{path}.{name}", "is missing")
        return found

    def words(
        self, path: str, known: tuple[str, ...], default: tuple[str, ...] = ()
    ) -> tuple[str, ...]:
        found = self.get(path, list, default=list(default))
        for word in found:
            if word not in known:
                raise self.fault(path, f"has {word!r}, which is not known", ", ".join(known))
        return tuple(found)

    def rates(self, path: str) -> dict[str, float]:
        table = self.get(path, Mapping)
        return {dtype: self.number(f"{path}.{dtype}", float) for dtype in table}
