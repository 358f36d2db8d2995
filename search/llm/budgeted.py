"""A budget: a request that would exceed it is not sent, and each sent request is counted."""

from __future__ import annotations

from search.llm.client import Client
from search.llm.exchange import Answer, ModelError, Request
from search.llm.ledger import Ledger


class Budgeted:
    """A client with the budget of a ledger; see `client.Client`."""

    def __init__(self, client: Client, ledger: Ledger):
        self._client = client
        self._ledger = ledger

    def complete(self, request: Request) -> Answer:
        """The client's answer with its cost. Raises ModelError if the budget does not allow the
        request."""
        reserve = self._ledger.reserve(request)
        try:
            return self._ledger.settle(reserve, self._client.complete(reserve.request))
        except ModelError as error:
            raise self._ledger.settle(reserve, error) from None
        finally:
            self._ledger.release(reserve)
