"""What an operator does where a model gives no answer."""

from __future__ import annotations

from search.context import GaveUp, Halted
from search.llm.exchange import ModelError


def gave_up(error: ModelError) -> GaveUp:
    """Nothing this time; Halted where no later request can succeed either."""
    if error.lasting:
        raise Halted(error, spent=error.kind == "budget") from error
    return GaveUp(str(error), unanswered=error.transient or error.kind == "gone")
