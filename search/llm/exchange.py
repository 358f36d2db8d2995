"""An exchange with a model: the request and the reply, as plain data."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, overload

from ir.digest import text_digest
from ir.errors import KernelError

ROLES = ("system", "user", "assistant", "tool")
FINISHES = ("stop", "length", "refusal")
USAGES = ("reported", "estimated")

# The kinds of errors: (whether another attempt may help, whether no later exchange can succeed).
KINDS = {
    "key": (False, True),  # the endpoint refuses the key
    "quota": (False, True),  # the account is empty
    "model": (False, True),  # there is no model of this name
    "protocol": (False, True),  # the address is not such an endpoint
    "gone": (False, False),  # not sent: requests are paused, or the search's time is over
    "closed": (False, True),  # cancelled by this process
    "budget": (False, True),  # not sent: the exchange would exceed the user's budget
    # the endpoint refuses this request, for example because it is too long
    "request": (False, False),
    "limit": (True, False),  # too many requests
    "server": (True, False),  # a fault of the endpoint
    "connection": (True, False),  # the endpoint was not reached
    "timeout": (True, False),  # it took too long
    "cut": (True, False),  # the answer broke off, or cannot be parsed
}

FAILED = {  # texts for a summary, by kind
    "key": "the key was refused",
    "quota": "the account was empty",
    "model": "no such model",
    "protocol": "no such endpoint",
    "gone": "not sent: the endpoint was left alone, or the time was over",
    "closed": "broken off here",
    "budget": "not sent: over the budget",
    "request": "the request was refused",
    "limit": "too many requests",
    "server": "a fault of the endpoint",
    "connection": "the connection failed",
    "timeout": "no answer in time",
    "cut": "the answer broke off or could not be read",
}


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that a model may call."""

    name: str
    description: str
    argument: str = ""  # name of its only argument, a text; empty if it has none
    meaning: str = ""  # of the argument


@dataclass(frozen=True, slots=True)
class Call:
    """A function call by a model."""

    id: str  # identifies the result
    name: str
    arguments: str  # as the model wrote them, normally a JSON object


@dataclass(frozen=True, slots=True)
class Message:
    """A message of a conversation."""

    role: str  # system, user, assistant, or tool (the result of a call)
    content: str
    calls: tuple[Call, ...] = ()  # calls by an assistant
    call: str = ""  # for a result: the id of its call

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise ValueError(f"a role is one of {', '.join(ROLES)}, not {self.role!r}")


@dataclass(frozen=True, slots=True)
class Request:
    """A request to a model, with its parameters."""

    model: str
    messages: tuple[Message, ...]
    temperature: float = 1.0
    max_tokens: int = 4096  # longest answer
    # Requests with different seeds are different; each proposal draws one from its generator. It is
    # also sent to endpoints that support seeds.
    seed: int | None = None
    effort: str = ""  # reasoning effort in the endpoint's words; empty: the endpoint's default
    # functions that the model may call, if its endpoint supports calls
    tools: tuple[Tool, ...] = ()

    def __post_init__(self) -> None:
        if not self.messages:
            raise ValueError("a request has at least one message")
        if self.max_tokens < 1:
            raise ValueError(f"max_tokens is at least 1, not {self.max_tokens}")
        if not (math.isfinite(self.temperature) and self.temperature >= 0):
            raise ValueError(f"a temperature is at least 0, not {self.temperature}")

    @property
    def digest(self) -> str:
        """A short digest, equal for equal requests."""
        return text_digest(self.to_json())

    @property
    def prompt(self) -> str:
        """All messages as one text."""
        return "\n".join(f"[{m.role}]\n{m.content}" for m in self.messages)

    def to_json(self) -> str:
        """The request as one line of JSON, which `request_of` reads."""
        table = _present(asdict(self), "effort", "tools")
        table["messages"] = [_present(m, "calls", "call") for m in table["messages"]]
        return json.dumps(table, sort_keys=True)


@dataclass(frozen=True, slots=True)
class Answer:
    """A model's answer, with its cost."""

    text: str
    # Paid tokens, including those of failed attempts. Reported by the endpoint, or else an upper
    # estimate.
    tokens_in: int
    tokens_out: int
    # In the currency of the prices; None if unknown.
    cost: float | None
    finish: str  # stop, length (at max_tokens) or refusal (`text` is then the reason)
    seconds: float
    usage: str = "reported"
    calls: tuple[Call, ...] = ()  # calls of functions, in place of a text or in addition

    def __post_init__(self) -> None:
        if self.finish not in FINISHES or self.usage not in USAGES:
            raise ValueError(f"no way for an answer to end: {self.finish!r}, {self.usage!r}")


class ModelError(KernelError):
    """An exchange without an answer.

    kind: one of KINDS. tokens_in, tokens_out, cost: paid in spite of the failure. retry_after:
    seconds that the endpoint asks to wait.
    """

    def __init__(
        self,
        kind: str,
        what: str,
        *,
        where: str = "",
        allowed: str = "",
        hint: str = "",
        tokens_in: int = 0,
        tokens_out: int = 0,
        cost: float | None = 0.0,
        retry_after: float | None = None,
    ):
        super().__init__(what, where=where, allowed=allowed, hint=hint)
        if kind not in KINDS:
            raise ValueError(f"a kind is one of {', '.join(KINDS)}, not {kind!r}")
        self.kind = kind
        self.tokens_in = tokens_in
        self.tokens_out = tokens_out
        self.cost = cost
        self.retry_after = retry_after

    @property
    def transient(self) -> bool:
        """Whether another attempt may help."""
        return KINDS[self.kind][0]

    @property
    def lasting(self) -> bool:
        """Whether no later exchange can succeed; with kind `model`, for this model only."""
        return KINDS[self.kind][1]

    def costing(self, tokens_in: int, tokens_out: int, cost: float | None) -> ModelError:
        """The same error with this cost."""
        table = {**self.table(), "tokens_in": tokens_in, "tokens_out": tokens_out, "cost": cost}
        return ModelError(**table, retry_after=self.retry_after)

    def passing(self) -> ModelError:
        """The same error as a temporary fault, of an endpoint that has answered before."""
        return ModelError(**{**self.table(), "kind": "server"}, retry_after=self.retry_after)

    def table(self) -> dict[str, Any]:
        """The error as plain data."""
        names = ("kind", "what", "where", "allowed", "hint", "tokens_in", "tokens_out", "cost")
        return {name: getattr(self, name) for name in names}


Reply = Answer | ModelError


@overload
def after(reply: Answer, failed: Sequence[ModelError]) -> Answer: ...
@overload
def after(reply: ModelError, failed: Sequence[ModelError]) -> ModelError: ...
def after(reply: Reply, failed: Sequence[ModelError]) -> Reply:
    """A reply with the cost of earlier failed attempts added."""
    if not failed:
        return reply
    every = (reply, *failed)
    tokens_in, tokens_out = (sum(r.tokens_in for r in every), sum(r.tokens_out for r in every))
    costs = [r.cost for r in every]
    cost = None if None in costs else sum(c for c in costs if c is not None)
    if isinstance(reply, ModelError):
        return reply.costing(tokens_in, tokens_out, cost)
    counted = not any(e.tokens_in or e.tokens_out for e in failed)
    usage = reply.usage if counted else "estimated"
    return replace(reply, tokens_in=tokens_in, tokens_out=tokens_out, cost=cost, usage=usage)


def request_of(text: str) -> Request:
    """The request of a text by `Request.to_json`."""
    table = json.loads(text)
    messages = tuple(Message(**_with_calls(m)) for m in table.pop("messages"))
    tools = tuple(Tool(**t) for t in table.pop("tools", ()))
    return Request(messages=messages, tools=tools, **table)


def _present(table: dict[str, Any], *names: str) -> dict[str, Any]:
    """The table without those of some entries that are empty, because older runs do not have
    them."""
    return {name: value for name, value in table.items() if value or name not in names}


def _with_calls(table: Mapping[str, Any]) -> dict[str, Any]:
    return {**table, "calls": tuple(Call(**call) for call in table.get("calls", ()))}


def reply_json(reply: Reply, refused: str = "") -> str:
    """A reply as one line of JSON, which `reply_of` reads. refused: why an answer was rejected."""
    if isinstance(reply, Answer):
        why = {"refused": refused} if refused else {}
        return json.dumps({"answer": _present(asdict(reply), "calls"), **why}, sort_keys=True)
    return json.dumps({"error": reply.table()}, sort_keys=True)


def reply_of(text: str) -> Reply:
    """The reply in a text of `reply_json`. Raises ValueError, KeyError or TypeError for any other
    text."""
    found = json.loads(text)
    if not isinstance(found, Mapping) or len({*found} - {"refused"}) != 1:
        raise ValueError(f"neither an answer nor an error: {text[:80]!r}")
    if "error" in found:
        return ModelError(**found["error"])
    return Answer(**_with_calls(found["answer"]))


def refusal_of(text: str) -> str:
    """Why an answer was rejected, in a text of `reply_json`; empty if it was accepted."""
    return str(json.loads(text).get("refused", ""))


def step_json(said: str) -> str:
    """The request text of a stored step. It is not a request to a model; `is_step` recognises
    it."""
    return json.dumps({"step": said})


def is_step(text: str) -> bool:
    """Whether the request of a stored exchange is a step within one."""
    return text.startswith('{"step": ')
