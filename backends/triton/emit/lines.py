"""Lines: what a program is written in; templates put them on paper."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Line:
    """One line."""

    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """A call, whose result has a name unless that is empty."""

    name: str
    function: str
    args: tuple[str, ...]

    @property
    def text(self) -> str:
        """The call on one line."""
        call = f"{self.function}({', '.join(self.args)})"
        return f"{self.name} = {call}" if self.name else call


@dataclass(frozen=True, slots=True)
class Block:
    """A header (`for ...`, `if ...`) and the lines below it."""

    header: str
    body: tuple[object, ...]
