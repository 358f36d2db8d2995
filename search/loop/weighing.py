"""Weighing: what an answer of a model costs, in evaluations, as the user wants it counted."""

from __future__ import annotations

from dataclasses import dataclass

from ir.errors import KernelError
from search.core.model_use import Spent
from search.core.quantity import positive

OPTION = "--weigh"
# What counts as much as one evaluation, unless the user says it.
RATES = {"time": 60.0, "tokens": 20_000.0}
WORDS = ("time", "money", "tokens", "none")


@dataclass(frozen=True, slots=True)
class Weighing:
    """How what models took is counted.

    by: `time`: seconds by which a request held up the search, as others were in flight beside it;
    `money`; `tokens`; or `none`: a child of a model costs as much as any other.
    """

    by: str
    rate: float  # of it, that counts as much as one evaluation

    def of(self, spent: Spent, requests: int) -> float:
        """What was spent, in evaluations. requests: how many may be in flight at once."""
        if self.by == "time":
            return spent.seconds / requests / self.rate
        if self.by == "money":
            return (spent.cost or 0.0) / self.rate
        return spent.tokens / self.rate if self.by == "tokens" else 0.0


def weighing(text: str) -> Weighing:
    """What a user says: `time`, `time:SECONDS`, `money:AMOUNT`, `tokens:NUMBER` or `none`.

    KernelError where it is not well-formed.
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
