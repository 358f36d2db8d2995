"""Reads and checks the general part of a target file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import isfinite
from typing import Any

from ir.errors import KernelError
from ir.machine import ATOMICS, ENGINES, MOST_THREADS, Machine, MachineClass, Space, Unit
from ir.source import near
from ir.spec import DTYPES
from machines.fields import faults

LEVELS = ("grid", "thread", "warp", "loop")
# Besides the class's on-chip space; a cache only has costs
SPACES = ("global", "cache", "register")
UNITS = ("matrix", "vector", "special")
GUIDE = "docs/add_a_chip.md lists the fields of a target file"


def machine(
    table: Mapping[str, Any], classes: Mapping[str, MachineClass], where: str = ""
) -> Machine:
    """A machine from the table of a target file. Raises KernelError at a missing or wrong field.
    The tables of backends are not checked here.

    classes: machine classes by the names that a file may give.
    """
    read = _Reader(table, where)
    backends = read.backends()
    model = classes[read.one_of("class", tuple(classes))]
    read.known("", (*_FIELDS, *backends, *model.tables))
    read.known("overheads", ("launch_us", "step_us"))
    spaces = {
        name: _space(read, f"spaces.{name}")
        for name in read.names("spaces", (*SPACES, model.on_chip), ("global", model.on_chip))
    }
    if not spaces["global"].bytes_per_second:
        read.refuse("spaces.global.bytes_per_second", "is missing")
    units = {name: _unit(read, name, model) for name in read.names("units", UNITS, ("vector",))}
    levels = {
        name: read.number(f"levels.{name}", int) for name in read.names("levels", LEVELS, ("grid",))
    }
    if levels.get("thread", MOST_THREADS) % levels.get("warp", 1):
        read.refuse(
            "levels.thread",
            f"is {levels.get('thread', MOST_THREADS)}",
            f"a multiple of `levels.warp`, {levels['warp']}",
        )
    return Machine(
        name=read.name(),
        title=read.get("title", str),
        backends=backends,
        levels=levels,
        spaces=spaces,
        units=units,
        model=model,
        engines=read.words("engines", ENGINES),
        box=read.number("box", int, default=0),
        atomics=read.words("atomics", tuple(DTYPES), ATOMICS),
        launch_us=read.number("overheads.launch_us", float, default=0.0),
        step_us=read.number("overheads.step_us", float, default=0.0),
        details={k: v for k, v in table.items() if k in (*backends, *model.tables)},
    )


_FIELDS = (
    "name",
    "title",
    "class",
    "backends",
    "levels",
    "spaces",
    "units",
    "engines",
    "box",
    "atomics",
    "overheads",
)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


def _space(read: _Reader, path: str) -> Space:
    read.known(path, ("bytes", "bytes_per_second", "sector"))
    return Space(
        bytes=read.number(f"{path}.bytes", int),
        bytes_per_second=read.number(f"{path}.bytes_per_second", float, default=0.0),
        sector=read.number(f"{path}.sector", int, default=1),
    )


def _unit(read: _Reader, name: str, model: MachineClass) -> Unit:
    path = f"units.{name}"
    read.known(path, ("flops", "step", "reads"))
    reads = read.get(f"{path}.reads", str, default="register")
    if reads not in (model.on_chip, "register"):
        read.refuse(f"{path}.reads", f"is {reads!r}", f"{model.on_chip}, register")
    return Unit(flops=read.rates(f"{path}.flops"), step=read.step(f"{path}.step"), reads=reads)


class _Reader:
    """Looks up fields by their dotted path, and names the field that is missing or wrong."""

    def __init__(self, table: Mapping[str, Any], where: str):
        self.table = table
        self.where = where

    def refuse(self, path: str, what: str, allowed: str = "", hint: str = "") -> None:
        """Raises KernelError about a field. Where faults are collected, reading continues with a placeholder value."""
        error = KernelError(
            f"field `{path}` {what}",
            where=self.where,
            allowed=allowed,
            hint=hint or GUIDE,
        )
        faults.refuse(error, of_field=True)

    def known(self, path: str, fields: tuple[str, ...]) -> None:
        """Refuses unknown fields of a table, if the table is there."""
        found = self.get(path, Mapping, default={}) if path else self.table
        for name in found:
            if name not in fields:
                whole = f"{path}.{name}" if path else name
                hint = near(name, fields)
                self.refuse(whole, "is not known", ", ".join(fields), hint)

    def name(self) -> str:
        """The target's name, which is also the name of a folder."""
        found: str = self.get("name", str)
        if not _NAME.fullmatch(found):
            self.refuse(
                "name",
                f"is {found!r}",
                "letters, digits, _ and -, 64 at most",
                "records are written to a folder of that name",
            )
        return found

    def backends(self) -> tuple[str, ...]:
        """The backends' names. The registry checks whether they exist."""
        found = self.get("backends", list)
        if not all(isinstance(b, str) for b in found) or len(set(found)) != len(found):
            self.refuse("backends", f"is {found!r}", "a list of names, each once")
            return ()
        return tuple(found)

    def one_of(self, path: str, known: tuple[str, ...]) -> str:
        """The field's value, which must be one of these words."""
        found = self.get(path, str)
        if found not in known:
            self.refuse(path, f"is {found!r}", " or ".join(known))
            return known[0]
        return str(found)

    def step(self, path: str) -> tuple[int, ...]:
        """The step of a unit: empty, or three whole numbers."""
        found = self.get(path, list, default=[])
        whole = all(type(n) is int and n > 0 for n in found)
        if len(found) not in (0, 3) or not whole:
            self.refuse(path, f"is {found!r}", "rows, columns, depth: whole numbers, 1 or more")
            return ()
        return tuple(found)

    def get(self, path: str, kind: type | tuple[type, ...], default: Any = None) -> Any:
        node: Any = self.table
        for part in path.split("."):
            if not isinstance(node, Mapping) or part not in node:
                if default is not None:
                    return default
                self.refuse(path, "is missing")
                return _stand_in(kind)
            node = node[part]
        if not isinstance(node, kind) or isinstance(node, bool):
            names = kind.__name__ if isinstance(kind, type) else "number"
            self.refuse(path, f"is {node!r}", f"a {names}")
            return _stand_in(kind)
        return node

    def number(self, path: str, kind: type, default: Any = None) -> Any:
        missing = object()
        given = self.get(path, object, missing) is not missing
        found = self.get(path, (int, float), default)
        whole = kind is not int or (isfinite(found) and int(found) == found)
        free = path.startswith("overheads.")  # may be 0
        if not isfinite(found) or found < 0 or not whole or found == 0 and not free and given:
            self.refuse(path, f"is {found!r}", "a positive number")
            return kind(1)
        return kind(found)

    def names(self, path: str, known: tuple[str, ...], needed: tuple[str, ...]) -> list[str]:
        found = list(self.get(path, Mapping))
        for name in found:
            if name not in known:
                self.refuse(f"{path}.{name}", "is not known", ", ".join(known))
        for name in needed:
            if name not in found:
                self.refuse(f"{path}.{name}", "is missing")
        return [*(name for name in found if name in known), *(n for n in needed if n not in found)]

    def words(
        self, path: str, known: tuple[str, ...], default: tuple[str, ...] = ()
    ) -> tuple[str, ...]:
        found = self.get(path, list, default=list(default))
        for word in found:
            if word not in known:
                self.refuse(path, f"has {word!r}, which is not known", ", ".join(known))
        return tuple(word for word in found if word in known)

    def rates(self, path: str) -> dict[str, float]:
        table = self.get(path, Mapping)
        self.known(path, tuple(DTYPES))
        return {dtype: self.number(f"{path}.{dtype}", float) for dtype in table}


def _stand_in(kind: type | tuple[type, ...]) -> Any:
    """A placeholder for a missing or wrong value, with which reading continues."""
    if kind is Mapping:
        return {}
    return "unnamed" if kind is str else [] if kind is list else 1
