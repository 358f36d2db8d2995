"""Weighing: the cost of a model's answer in evaluations, as the user chooses."""

from __future__ import annotations

from dataclasses import dataclass

from ir.errors import KernelError
from search.core.model_use import Spent
from search.core.quantity import positive

OPTION = "--weigh"
# The default amounts that cost as much as one evaluation.
RATES = {"time": 60.0, "tokens": 20_000.0}
WORDS = ("time", "money", "tokens", "none")


@dataclass(frozen=True, slots=True)
class Weighing:
    """How the cost of models is counted.

    by: `time`: seconds of a request divided by the requests in flight; `money`; `tokens`; or
    `none`: a child of a model costs as much as any other.
    """

    by: str
    rate: float  # amount that costs as much as one evaluation

    def of(self, spent: Spent, requests: int) -> float:
        """The cost in evaluations. requests: how many may be in flight at once."""
        if self.by == "time":
            return spent.seconds / requests / self.rate
        if self.by == "money":
            return (spent.cost or 0.0) / self.rate
        return spent.tokens / self.rate if self.by == "tokens" else 0.0


def weighing(text: str) -> Weighing:
    """Parses `time`, `time:SECONDS`, `money:AMOUNT`, `tokens:NUMBER` or `none`.

    Raises KernelError for other texts.
    """
    by, colon, said = text.partition(":")
    if by not in WORDS or (by == "none" and colon):
        raise _error(text)
    if by == "none":
        return Weighing(by, 1.0)
    if not colon:
        if by not in RATES:
            raise _error(text)
        return Weighing(by, RATES[by])
    try:
        rate = float(said)
    except ValueError:
        raise _error(text) from None
    if not positive(rate):
        raise _error(text)
    return Weighing(by, rate)


def _error(text: str) -> KernelError:
    return KernelError(
        f"`{text}` does not say what a model's answer costs",
        where=OPTION,
        allowed="time[:SECONDS], money:AMOUNT, tokens[:NUMBER], none",
        hint="each says how much counts as one evaluation, for example --weigh=money:0.02",
    )
