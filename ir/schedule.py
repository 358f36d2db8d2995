"""A schedule: how a kernel is computed, as a list of decisions, one per line."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import cast

from ir.errors import SourceRange
from ir.memo import Keeping, kept

Argument = str | int | float


@dataclass(frozen=True, slots=True)
class Decision(Keeping):
    """One line: a verb, its subject and its options."""

    verb: str
    subject: str  # an index, a loop, a tensor, ...
    options: tuple[tuple[str, Argument], ...] = ()  # the named arguments, in order
    place: SourceRange | None = field(default=None, compare=False, repr=False)

    def option(self, name: str, default: Argument | None = None) -> Argument | None:
        """The value of an option, or `default`."""
        for key, value in self.options:
            if key == name:
                return value
        return default

    def number(self, name: str, default: int | None = None) -> int:
        """The value of an integer option, or `default`. Raises TypeError if there is neither."""
        return int(cast(int, self.option(name, default)))

    @kept
    def exact(self) -> bool:
        """Whether every option is a string or an integer.

        Equal decisions are then the same; 2, 2.0 and True are equal numbers.
        """
        return all(type(value) in (str, int) for _, value in self.options)

    @kept
    def __hash__(self) -> int:
        return hash((self.verb, self.subject, self.options))

    def __str__(self) -> str:
        rest = "".join(f", {k}={v}" for k, v in self.options)
        return f"{self.verb}({self.subject}{rest})"


@dataclass(frozen=True, slots=True)
class Schedule(Keeping):
    """The decisions for one kernel; `str(schedule)` is the text form."""

    kernel: str
    decisions: tuple[Decision, ...] = ()

    def of(self, verb: str) -> tuple[Decision, ...]:
        """The decisions of one verb, in order."""
        return self._by_verb().get(verb, ())

    def only(self, verbs: Collection[str]) -> Schedule:
        """The schedule with the decisions of these verbs only."""
        return Schedule(self.kernel, tuple(d for d in self.decisions if d.verb in verbs))

    def find(self, verb: str, subject: str) -> Decision | None:
        """The last decision of a verb on a subject, or None."""
        return self._by_subject().get((verb, subject))

    @kept
    def exact(self) -> bool:
        """Whether equality of schedules implies that they are the same, see `Decision.exact`."""
        return all(d.exact() for d in self.decisions)

    @kept
    def _by_verb(self) -> dict[str, tuple[Decision, ...]]:
        found: dict[str, list[Decision]] = {}
        for d in self.decisions:
            found.setdefault(d.verb, []).append(d)
        return {verb: tuple(made) for verb, made in found.items()}

    @kept
    def _by_subject(self) -> dict[tuple[str, str], Decision]:
        return {(d.verb, d.subject): d for d in self.decisions}

    def __str__(self) -> str:
        return f"schedule({self.kernel})\n" + "".join(f"{d}\n" for d in self.decisions)
