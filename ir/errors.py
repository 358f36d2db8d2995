"""The error for users: what is wrong, where, what is allowed, what to do."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SourceRange:
    """A range in a source text."""

    line: int  # from 1
    column: int  # from 0
    end: int  # exclusive column, in the same line
    text: str  # of the line

    def __str__(self) -> str:
        width = max(1, min(self.end, len(self.text)) - self.column)
        return f"    {self.text}\n    {' ' * self.column}{'^' * width}"


class KernelError(Exception):
    """A fault in the user's input: a text, a file, an argument.

    what: the fault, with the offending value.
    place: its position in a text.
    where: the file or argument that contains it.
    allowed: what would be accepted.
    hint: what to do.
    """

    def __init__(
        self,
        what: str,
        *,
        place: SourceRange | None = None,
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
        """The same fault, located in `where` (a file, an argument)."""
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
