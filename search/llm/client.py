"""A client: who is asked, whether a model, a store of answers, or one of these with conditions."""

from __future__ import annotations

from typing import Protocol

from search.llm.exchange import Answer, Request
from search.llm.exchange import ModelError as ModelError


class Client(Protocol):
    """Answers requests, from any number of threads."""

    def complete(self, request: Request) -> Answer:
        """The model's answer; ModelError where there is none."""
