"""Requests in flight: the data of a request, and its entry in the log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ir.errors import KernelError
from search.core.model_use import Spent
from search.loop.context import GaveUp, Halted
from search.loop.script import Taken
from search.loop.state import Proposal


@dataclass(frozen=True, slots=True)
class Request:
    """A request in flight."""

    number: int  # number of the draw
    operator: str  # empty for a request for better prompts
    proposal: Proposal | None
    asked: str  # the request in words


def taken_of(request: Request, found: object, spent: Spent) -> Taken:
    """The log entry of a request."""
    taken = Taken(request.operator, spent, request.asked, halted=isinstance(found, Halted))
    if isinstance(found, GaveUp):
        why, prompt = found.reason, found.prompt
        return replace(
            taken, why=why, unanswered=found.unanswered, answer=found.answer, prompt=prompt
        )
    return taken


def silenced(reasons: Sequence[str]) -> Halted:
    """The error that ends a search without answers from models and without other operators."""
    words, count = Counter(reasons).most_common(1)[0]
    return Halted(
        KernelError(
            f"no model answers, and no other operator has anything new: {count} of "
            f"{len(reasons)} requests failed as follows: {words}",
            hint="continue with --resume when the endpoint answers again",
        ),
        spent=False,
    )
