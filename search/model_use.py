"""The use of models in a run: what they were asked, what that took, and what came of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
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
    """What a run asked of models. answers: that came.  refused: those of which neither a
    candidate nor a version of the prompts was made.  unanswered: requests to which none came,
    for a fault or for want of budget.  prompts: in the order they were made."""

    spent: Spent
    answers: int = 0
    refused: int = 0
    unanswered: int = 0
    prompts: tuple[PromptUse, ...] = ()

    def table(self) -> dict[str, Any]:
        """As plain data; the cost is None where it is not known."""
        return {
            "tokens": self.spent.tokens,
            "cost": self.spent.cost,
            "answers": self.answers,
            "refused": self.refused,
            "unanswered": self.unanswered,
            "prompts": [asdict(version) for version in self.prompts],
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
            parts.append(f"{self.unanswered} {requests} without an answer")
        if len(self.prompts) > 1:
            parts.append(f"{len(self.prompts)} versions of the prompts")
        return "; ".join(parts)
