"""Lines: what a program is written in; templates put them on paper."""

from __future__ import annotations

from dataclasses import dataclass


def terms(text: str, within: int = 0, groups: bool = True) -> tuple[str, ...]:
    """A text in parts that begin with the sign that joins them, `+` or `&`, where at most
    `within` brackets are open. groups: brackets count that no name stands before."""
    found, start = [], 0
    opened: list[bool] = []
    for at, sign in enumerate(text):
        if sign in "([{":
            opened.append(groups or sign != "(" or text[at - 1].isalnum())
        elif sign in ")]}":
            opened.pop()
        elif sign in "+&" and sum(opened) <= within and text[at - 1 : at + 2] == f" {sign} ":
            found.append(text[start : at - 1])
            start = at
    return (*found, text[start:])


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

    @staticmethod
    def terms(arg: str) -> tuple[str, ...]:
        """An argument in parts, for one that is too long for a line."""
        return terms(arg)


@dataclass(frozen=True, slots=True)
class Block:
    """A header (`for ...`, `if ...`) and the lines below it."""

    header: str
    body: tuple[object, ...]
