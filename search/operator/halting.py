"""The result of an operator whose model gives no answer."""

from __future__ import annotations

from search.llm.exchange import ModelError
from search.loop.context import GaveUp, Halted


def gave_up(error: ModelError) -> GaveUp:
    """The result without a child. Raises Halted if no later request can succeed."""
    if error.lasting:
        raise Halted(error, spent=error.kind == "budget") from error
    return GaveUp(str(error), unanswered=error.transient or error.kind == "gone")
