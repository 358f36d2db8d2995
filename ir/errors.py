"""The one error of this project's users: where, what is wrong, what is allowed, what to do."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """A piece of a source text: its line (from 1), first column and end column (from 0)."""

    line: int
    column: int
    end: int
    text: str

    def __str__(self) -> str:
        width = max(1, min(self.end, len(self.text)) - self.column)
        return f"    {self.text}\n    {' ' * self.column}{'^' * width}"


class KernelError(Exception):
    """A fault in what a user gave: a text, a file, an argument.

    what: the fault, with the offending value.  place: where in a text.  where: the file or
    argument it stands in.  allowed: what would be accepted.  hint: what to do.
    """

    def __init__(
        self,
        what: str,
        *,
        place: Place | None = None,
        where: str = "",
        allowed: str = "",
        hint: str = "",
    ):
        super().__init__(what)
        self.what = what
        self.place = place
        self.where = where
        self.allowed = allowed
        self.hint = hint

    def within(self, where: str) -> KernelError:
        """The same fault, said to stand in `where` (a file, an argument)."""
        return KernelError(
            self.what, place=self.place, where=where, allowed=self.allowed, hint=self.hint
        )

    def __str__(self) -> str:
        parts = (self.where, f"line {self.place.line}" if self.place else "")
        head = ", ".join(p for p in parts if p)
        lines = [f"{head}: {self.what}" if head else self.what]
        if self.place:
            lines.append(str(self.place))
        if self.allowed:
            lines.append(f"  allowed: {self.allowed}")
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)
