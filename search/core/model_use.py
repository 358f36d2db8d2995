"""The use of models in a run: requests, their cost, and their results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Spent:
    """The tokens, cost and time that models took."""

    tokens: int = 0
    # In the currency of the prices; None if a price is unknown.
    cost: float | None = 0.0
    seconds: float = 0.0  # time until the answers came

    def plus(self, other: Spent) -> Spent:
        """The sum of both."""
        unknown = self.cost is None or other.cost is None
        cost = None if unknown else (self.cost or 0.0) + (other.cost or 0.0)
        return Spent(self.tokens + other.tokens, cost, self.seconds + other.seconds)


@dataclass(slots=True)
class Meter:
    """Adds up what one conversation takes."""

    spent: Spent = Spent()


@dataclass(frozen=True, slots=True)
class PromptUse:
    """A version of the prompts."""

    digest: str
    # Digest of the version that `move` changed. Both are empty for the first version.
    parent: str
    move: str
    children: int  # evaluated children of this version, including `failed`
    failed: int
    gain: float  # best speed-up of a child over its parent, at least 1


@dataclass(frozen=True, slots=True)
class ModelUse:
    """The requests of a run to models."""

    spent: Spent
    answers: int = 0
    refused: int = 0  # refused answers, each with a stored reason
    unanswered: int = 0  # requests without an answer: a fault, or an exhausted budget
    prompts: tuple[PromptUse, ...] = ()  # in the order in which they were made
    failed: Mapping[str, int] = field(default_factory=dict)  # unanswered requests by reason
    cut: int = 0  # answers that were cut off at the token limit
    steps: int = 0  # steps within exchanges: drafts that were tried, documents that were read
    parameterised: int = 0  # accepted answers with parameters
    combinations: int = 0  # evaluated parameter combinations of these

    def table(self) -> dict[str, Any]:
        """The use as plain data. `cost` is None if unknown. `failed` is present if requests
        failed."""
        failed = {"failed": dict(self.failed)} if self.failed else {}
        return {
            "tokens": self.spent.tokens,
            "cost": self.spent.cost,
            "answers": self.answers,
            "refused": self.refused,
            "unanswered": self.unanswered,
            "cut": self.cut,
            "steps": self.steps,
            "parameterised": self.parameterised,
            "combinations": self.combinations,
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
        if self.steps:
            parts.append(f"{self.steps} {'step' if self.steps == 1 else 'steps'} within exchanges")
        if self.parameterised:
            answers = "answer" if self.parameterised == 1 else "answers"
            parts.append(
                f"{self.parameterised} {answers} with parameters, of which {self.combinations} "
                f"{'combination' if self.combinations == 1 else 'combinations'} evaluated"
            )
        if self.cut:
            answers = "answer" if self.cut == 1 else "answers"
            parts.append(f"{self.cut} {answers} cut off at --answer-tokens")
        if len(self.prompts) > 1:
            parts.append(f"{len(self.prompts)} versions of the prompts")
        return "; ".join(parts)
