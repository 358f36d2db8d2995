"""Checks the fields of a backend's own table of a target file, before anything runs.

A manifest names the check function, `table = "module:function"` in the backend's folder. That
function imports no toolchain, takes the machine, and raises the first fault through `Checked`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isclose, isfinite
from typing import Any

from ir.errors import KernelError
from ir.machine import Machine
from ir.source import near
from ir.spec import DTYPES
from machines.fields import faults

GUIDE = "docs/add_a_chip.md lists the fields of a target file"


@dataclass(frozen=True, slots=True)
class Kind:
    """The allowed values of a field."""

    allowed: str  # in words
    holds: Callable[[Any], bool]  # whether a value is allowed
    optional: bool = False  # whether the field may be left out


Fields = Mapping[str, "Kind | Fields"]


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def _whole(value: Any) -> bool:
    return _number(value) and value == int(value)


RATE = Kind("a number greater than 0", lambda v: _number(v) and v > 0)
AMOUNT = Kind("a number, 0 or more", lambda v: _number(v) and v >= 0)
SIZE = Kind("a whole number, 1 or more", lambda v: _whole(v) and v >= 1)
COUNT = Kind("a whole number, 0 or more", lambda v: _whole(v) and v >= 0)
SHARE = Kind("a number greater than 0, 1 at most", lambda v: _number(v) and 0 < v <= 1)
FLAG = Kind("true or false", lambda v: isinstance(v, bool))


def words(known: tuple[str, ...]) -> Kind:
    """A list of some of these words, each at most once."""
    return Kind(
        f"a list of {', '.join(known)}",
        lambda v: isinstance(v, list) and len(set(map(str, v))) == len(v) and set(v) <= set(known),
    )


def one_of(*known: Any) -> Kind:
    """One of some values."""
    pairs = {(type(k), k) for k in known}
    return Kind(
        " or ".join(map(repr, known)), lambda v: isinstance(v, str | int) and (type(v), v) in pairs
    )


def rates(dtypes: tuple[str, ...] = tuple(DTYPES)) -> Fields:
    """A table with an optional rate for each dtype."""
    return {d: Kind(RATE.allowed, RATE.holds, optional=True) for d in dtypes}


def require(
    table: Mapping[str, Any], fields: Fields, refuse: Callable[..., None], prefix: str = ""
) -> None:
    """Refuses each field that is unknown, missing or wrong. refuse: a function like `Checked.refuse`."""
    for name in table:
        if name not in fields:
            refuse(prefix + name, "is not known", ", ".join(fields), near(name, fields, GUIDE))
    for name, kind in fields.items():
        if name not in table:
            if isinstance(kind, Kind) and kind.optional:
                continue
            refuse(prefix + name, "is missing", getattr(kind, "allowed", "a table"))
            continue
        value = table[name]
        if isinstance(kind, Kind):
            if not kind.holds(value):
                refuse(prefix + name, f"is {value!r}", kind.allowed)
        elif not isinstance(value, Mapping):
            refuse(prefix + name, f"is {value!r}", "a table")
        else:
            require(value, kind, refuse, f"{prefix}{name}.")


class Checked:
    """A backend's table whose fields were checked. Raises KernelError at the first that is wrong."""

    def __init__(self, machine: Machine, backend: str, fields: Fields):
        self.machine, self.backend = machine, backend
        self.table: Mapping[str, Any] = machine.details.get(backend, {})
        if fields and backend not in machine.details:
            self._wrong("", "is missing", "a table")
        elif not isinstance(self.table, Mapping):
            self._wrong("", f"is {self.table!r}", "a table")
        else:
            require(self.table, fields, self._wrong)
        faults.require_complete()

    def _wrong(self, path: str, what: str, allowed: str = "", hint: str = GUIDE) -> None:
        self.refuse(path, what, allowed, hint, of_field=True)

    def refuse(
        self, path: str, what: str, allowed: str = "", hint: str = GUIDE, of_field: bool = False
    ) -> None:
        """Raises KernelError about a field, or collects it where faults are collected."""
        name = f"{self.backend}.{path}" if path else self.backend
        faults.refuse(KernelError(f"field `{name}` {what}", allowed=allowed, hint=hint), of_field)

    def equal(self, path: str, found: Any, general: str, wanted: Any, within: float = 0.0) -> None:
        """Refuses a figure that contradicts a field of the general part."""
        if found == wanted or within and isclose(found, wanted, rel_tol=within):
            return
        self.refuse(
            path,
            f"makes {general} {found:g}, where it is {wanted:g}"
            if _number(found) and _number(wanted)
            else f"is {found!r}, where `{general}` is {wanted!r}",
            f"figures that agree with `{general}`",
            f"change one of the two; {GUIDE}",
        )

    def at_most(self, path: str, found: float, other: str, most: float) -> None:
        """Refuses a figure that exceeds another field's."""
        if found > most:
            self.refuse(path, f"is {found:g}, more than `{other}`", f"{most:g} at most")
