"""The use of models in a run: what they were asked, what that took, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Spent:
    """What models have taken. cost: in the currency of the prices; None where a price is not
    known."""

    tokens: int = 0
    cost: float | None = 0.0


@dataclass(frozen=True, slots=True)
class PromptUse:
    """A version of the prompts. parent: digest of the one that it was made of, by which move;
    empty for the first.  children: made under it and evaluated, of which some failed.  gain: the
    best factor of a child's time under its parent's, at least 1."""

    digest: str
    parent: str
    move: str
    children: int
    failed: int
    gain: float


@dataclass(frozen=True, slots=True)
class ModelUse:
    """What a run asked of models. answers: that came.  refused: those that were not taken, each
    with a reason that is stored.  unanswered: requests to which none came, for a fault or for want
    of budget.  prompts: in the order they were made.  failed: the unanswered, by why."""

    spent: Spent
    answers: int = 0
    refused: int = 0
    unanswered: int = 0
    prompts: tuple[PromptUse, ...] = ()
    failed: Mapping[str, int] = field(default_factory=dict)

    def table(self) -> dict[str, Any]:
        """As plain data; the cost is None where it is not known, and `failed` is there where
        requests failed."""
        failed = {"failed": dict(self.failed)} if self.failed else {}
        return {
            "tokens": self.spent.tokens,
            "cost": self.spent.cost,
            "answers": self.answers,
            "refused": self.refused,
            "unanswered": self.unanswered,
            "prompts": [asdict(version) for version in self.prompts],
            **failed,
        }

    def __str__(self) -> str:
        cost = self.spent.cost
        paid = "at a cost that is not known" if cost is None else f"at a cost of {cost:.4g}"
        parts = [
            f"{self.spent.tokens} tokens {paid}",
            f"{self.answers} {'answer' if self.answers == 1 else 'answers'}, "
            f"{self.refused} of them refused",
        ]
        if self.unanswered:
            requests = "request" if self.unanswered == 1 else "requests"
            reasons = ", ".join(f"{count} {words}" for words, count in self.failed.items())
            why = f" ({reasons})" if reasons else ""
            parts.append(f"{self.unanswered} {requests} without an answer{why}")
        if len(self.prompts) > 1:
            parts.append(f"{len(self.prompts)} versions of the prompts")
        return "; ".join(parts)
