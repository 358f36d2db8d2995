"""The interface of clients: a model, a store of answers, or a wrapper of either."""

from __future__ import annotations

from typing import Protocol

from search.llm.exchange import Answer, Request
from search.llm.exchange import ModelError as ModelError


class Client(Protocol):
    """Answers requests. It is thread-safe."""

    def complete(self, request: Request) -> Answer:
        """The model's answer. Raises ModelError if there is none."""
