"""The ledger: what models have cost, what is reserved for requests in flight, and what is left."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeVar

from ir.errors import KernelError
from search.llm.costs import EXAMPLE, MILLION, PLACES, Price, Prices
from search.llm.exchange import Answer, ModelError, Reply, Request
from search.llm.tokens import request_tokens

LEAST_ANSWER = 256  # tokens that must be left for an answer, unless the request asks for fewer
Paid = TypeVar("Paid", Answer, ModelError)


@dataclass(frozen=True, slots=True)
class Bill:
    """The cost of a model so far."""

    model: str
    tokens_in: int = 0
    tokens_out: int = 0
    # In 10^-9 of the currency; None if the price is unknown.
    units: int | None = 0
    estimated: bool = False  # whether some tokens are estimates

    @property
    def tokens(self) -> int:
        """Input and output tokens."""
        return self.tokens_in + self.tokens_out

    @property
    def cost(self) -> float | None:
        """In the currency of the prices; None if unknown."""
        return None if self.units is None else self.units / 10**PLACES

    def plus(self, reply: Reply) -> Bill:
        """The bill with one more exchange."""
        units = None
        if self.units is not None and reply.cost is not None:
            units = self.units + round(reply.cost * 10**PLACES)
        if isinstance(reply, ModelError):
            guessed = bool(reply.tokens_in)
        else:
            guessed = reply.usage == "estimated"
        return Bill(
            self.model,
            self.tokens_in + reply.tokens_in,
            self.tokens_out + reply.tokens_out,
            units,
            self.estimated or guessed,
        )


@dataclass(frozen=True, slots=True)
class Reserve:
    """A reservation for a request: an upper estimate of its tokens, and their cost."""

    request: Request
    estimate: int
    tokens: int
    cost: float


class Ledger:
    """Counts tokens and money by model, against a budget. It is thread-safe.

    max_tokens: input and output together. max_cost: in the currency of the prices; requires a price
    for each model in use.
    """

    def __init__(
        self,
        prices: Prices | None = None,
        max_tokens: int | None = None,
        max_cost: float | None = None,
    ):
        self.max_tokens = max_tokens
        self.max_cost = max_cost
        self._prices = dict(prices or {})
        self._bills: dict[str, Bill] = {}
        self._factors: dict[str, float] = {}
        self._open: list[Reserve] = []
        self._changed = threading.Condition()

    @property
    def tokens(self) -> int:
        """All tokens so far, over all models."""
        return sum(b.tokens for b in self.bills())

    @property
    def cost(self) -> float | None:
        """The cost so far; None if a model's price is unknown."""
        units = [b.units for b in self.bills()]
        return None if None in units else sum(u for u in units if u) / 10**PLACES

    def bills(self) -> tuple[Bill, ...]:
        """The bills of the models, by name."""
        with self._changed:
            return tuple(self._bills[name] for name in sorted(self._bills))

    def require_prices(self, models: Iterable[str], where: str = "--max-cost") -> None:
        """Raises KernelError if there is a budget of money and a model's price is unknown."""
        unknown = [m for m in models if m not in self._prices]
        if self.max_cost is not None and unknown:
            raise KernelError(f"what `{unknown[0]}` costs is not known", where=where, hint=EXAMPLE)

    def reserve(self, request: Request) -> Reserve:
        """Reserves the cost of a request, and reduces its answer to what is left.

        Waits for requests in flight if these may leave more. Raises ModelError if the rest of the
        budget does not allow an answer.
        """
        with self._changed:
            factor = self._factors.get(request.model, 1.0)
            estimate = int(request_tokens(request) * factor) + 1
            while True:
                room = self._room(request, estimate)
                if room >= request.max_tokens or not self._open:
                    break
                self._changed.wait()
            if room < min(LEAST_ANSWER, request.max_tokens):
                raise self._spent(estimate)
            asked = replace(request, max_tokens=min(room, request.max_tokens))
            tokens = estimate + asked.max_tokens
            cost = self._price(request.model).of(estimate, asked.max_tokens)
            self._open.append(Reserve(asked, estimate, tokens, cost))
            return self._open[-1]

    def settle(self, reserve: Reserve, reply: Paid) -> Paid:
        """Replaces a reservation by the actual cost. Returns the reply with its cost."""
        model = reserve.request.model
        with self._changed:
            if isinstance(reply, Answer):
                ratio = reply.tokens_in / max(1, request_tokens(reserve.request))
                self._factors[model] = max(ratio, self._factors.get(model, 1.0))
                told = replace(reply, cost=self._cost(model, reply))
            else:
                told = reply.costing(reply.tokens_in, reply.tokens_out, self._cost(model, reply))
            self.release(reserve)
            self.add(model, told)
        return told

    def release(self, reserve: Reserve) -> None:
        """Removes a reservation without a cost."""
        with self._changed:
            self._open = [r for r in self._open if r is not reserve]
            self._changed.notify_all()

    def add(self, model: str, reply: Reply) -> None:
        """Counts an exchange of this session or of an earlier one."""
        with self._changed:
            self._bills[model] = self._bills.get(model, Bill(model)).plus(reply)

    def _cost(self, model: str, reply: Reply) -> float | None:
        if not (reply.tokens_in or reply.tokens_out):
            return 0.0
        price = self._prices.get(model)
        return price.of(reply.tokens_in, reply.tokens_out) if price else None

    def _price(self, model: str) -> Price:
        self.require_prices([model])
        return self._prices.get(model, Price(0.0, 0.0))

    def _room(self, request: Request, estimate: int) -> int:
        """The longest answer that the budget allows now; negative if it allows no request."""
        room = request.max_tokens
        price = self._price(request.model)
        if self.max_tokens is not None:
            used = self.tokens + sum(r.tokens for r in self._open)
            room = min(room, self.max_tokens - used - estimate)
        if self.max_cost is not None:
            set_aside = sum(r.cost for r in self._open) + price.of(estimate, 0)
            left = self.max_cost - (self.cost or 0.0) - set_aside
            if left < 0:
                return -1
            if price.tokens_out:
                room = min(room, int(left * MILLION / price.tokens_out))
        return room

    def _spent(self, estimate: int) -> ModelError:
        parts = []
        if self.max_tokens is not None:
            parts.append(f"{self.tokens} of {self.max_tokens} tokens are spent")
        if self.max_cost is not None:
            parts.append(f"{self.cost or 0.0:.4g} of {self.max_cost:.4g} is paid")
        return ModelError(
            "budget",
            f"what is left of the budget does not allow a request of about {estimate} tokens "
            f"and an answer: {', '.join(parts)}",
            where="--max-tokens, --max-cost",
            hint="allow more",
        )
