"""A budget: an exchange that would pass it is not sent, and each that was sent is counted."""

from __future__ import annotations

from search.llm.client import Client
from search.llm.exchange import Answer, ModelError, Request
from search.llm.ledger import Ledger


class Budgeted:
    """A client within the budget of a ledger; see `client.Client`."""

    def __init__(self, client: Client, ledger: Ledger):
        self._client = client
        self._ledger = ledger

    def complete(self, request: Request) -> Answer:
        """The client's answer, with its cost; ModelError where the budget does not allow it."""
        reserve = self._ledger.reserve(request)
        try:
            return self._ledger.settle(reserve, self._client.complete(reserve.request))
        except ModelError as error:
            raise self._ledger.settle(reserve, error) from None
        finally:
            self._ledger.release(reserve)
