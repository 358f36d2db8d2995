"""An exchange with a model: what is asked, and what comes back; plain data both ways."""

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

# What can go wrong: whether another attempt may help, whether no later exchange can succeed.
KINDS = {
    "key": (False, True),  # the endpoint does not know the key, or does not let it in
    "quota": (False, True),  # the account has nothing left
    "model": (False, True),  # there is no model of this name
    "protocol": (False, True),  # what answers is no such endpoint
    "gone": (False, False),  # not sent: it is left alone for a while, or the time is over
    "closed": (False, True),  # it was broken off here
    "budget": (False, True),  # the exchange would pass the user's budget; it was not sent
    "request": (False, False),  # the endpoint will not have this one, as where it is too long
    "limit": (True, False),  # too many requests
    "server": (True, False),  # the endpoint has a fault
    "connection": (True, False),  # the endpoint was not reached
    "timeout": (True, False),  # it took too long
    "cut": (True, False),  # the answer broke off, or cannot be read
}

FAILED = {  # the same, as a summary counts them
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
    argument: str = ""  # the name of its only argument, a text; empty for none
    meaning: str = ""  # of the argument


@dataclass(frozen=True, slots=True)
class Call:
    """A model's call of a function."""

    id: str  # by which its result is told apart
    name: str
    arguments: str  # as the model wrote them: mostly an object of JSON


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: str  # system, user, assistant, or tool for the result of a call
    content: str
    calls: tuple[Call, ...] = ()  # of an assistant
    call: str = ""  # the id of the call that this is the result of

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise ValueError(f"a role is one of {', '.join(ROLES)}, not {self.role!r}")


@dataclass(frozen=True, slots=True)
class Request:
    """What a model is asked, and how."""

    model: str
    messages: tuple[Message, ...]
    temperature: float = 1.0
    max_tokens: int = 4096  # the longest answer
    # Part of what tells two requests apart, so that each proposal draws one from its generator;
    # endpoints that know seeds are given it.
    seed: int | None = None
    effort: str = ""  # of a model that thinks, as the endpoint calls it; empty: its own default
    tools: tuple[Tool, ...] = ()  # that the model may call, where its endpoint knows such calls

    def __post_init__(self) -> None:
        if not self.messages:
            raise ValueError("a request has at least one message")
        if self.max_tokens < 1:
            raise ValueError(f"max_tokens is at least 1, not {self.max_tokens}")
        if not (math.isfinite(self.temperature) and self.temperature >= 0):
            raise ValueError(f"a temperature is at least 0, not {self.temperature}")

    @property
    def digest(self) -> str:
        """A short name, equal for equal requests."""
        return text_digest(self.to_json())

    @property
    def prompt(self) -> str:
        """All messages as one text."""
        return "\n".join(f"[{m.role}]\n{m.content}" for m in self.messages)

    def to_json(self) -> str:
        """One line of JSON; `request_of` reads it."""
        table = _present(asdict(self), "effort", "tools")
        table["messages"] = [_present(m, "calls", "call") for m in table["messages"]]
        return json.dumps(table, sort_keys=True)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model said, and what that took."""

    text: str
    # Those paid for the exchange, attempts that failed included; as the endpoint says, or
    # `estimated` from above where it does not.
    tokens_in: int
    tokens_out: int
    # In the currency of the prices; None where they are not known.
    cost: float | None
    finish: str  # stop, length (it reached max_tokens) or refusal (`text` then says why)
    seconds: float
    usage: str = "reported"
    calls: tuple[Call, ...] = ()  # of functions, instead of an answer or beside it

    def __post_init__(self) -> None:
        if self.finish not in FINISHES or self.usage not in USAGES:
            raise ValueError(f"no way for an answer to end: {self.finish!r}, {self.usage!r}")


class ModelError(KernelError):
    """An exchange that gave no answer.

    kind: one of KINDS.  tokens_in, tokens_out, cost: paid for it all the same.  retry_after:
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
        """Whether no later exchange can succeed (with this model, where it is unknown)."""
        return KINDS[self.kind][1]

    def costing(self, tokens_in: int, tokens_out: int, cost: float | None) -> ModelError:
        """The same, having taken so much."""
        table = {**self.table(), "tokens_in": tokens_in, "tokens_out": tokens_out, "cost": cost}
        return ModelError(**table, retry_after=self.retry_after)

    def passing(self) -> ModelError:
        """The same of an endpoint that has answered before: a fault that may pass."""
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
    """A reply that was paid for with failed attempts too."""
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
    """The request that `Request.to_json` wrote."""
    table = json.loads(text)
    messages = tuple(Message(**_with_calls(m)) for m in table.pop("messages"))
    tools = tuple(Tool(**t) for t in table.pop("tools", ()))
    return Request(messages=messages, tools=tools, **table)


def _present(table: dict[str, Any], *names: str) -> dict[str, Any]:
    """Without those of some entries that are empty: older runs have none of them."""
    return {name: value for name, value in table.items() if value or name not in names}


def _with_calls(table: Mapping[str, Any]) -> dict[str, Any]:
    return {**table, "calls": tuple(Call(**call) for call in table.get("calls", ()))}


def reply_json(reply: Reply, refused: str = "") -> str:
    """One line of JSON; `reply_of` reads it. refused: why an answer was not taken."""
    if isinstance(reply, Answer):
        why = {"refused": refused} if refused else {}
        return json.dumps({"answer": _present(asdict(reply), "calls"), **why}, sort_keys=True)
    return json.dumps({"error": reply.table()}, sort_keys=True)


def reply_of(text: str) -> Reply:
    """What `reply_json` wrote; ValueError, KeyError or TypeError where it is something else."""
    found = json.loads(text)
    if not isinstance(found, Mapping) or len({*found} - {"refused"}) != 1:
        raise ValueError(f"neither an answer nor an error: {text[:80]!r}")
    if "error" in found:
        return ModelError(**found["error"])
    return Answer(**_with_calls(found["answer"]))


def refusal_of(text: str) -> str:
    """Why an answer was not taken, of what `reply_json` wrote; empty where it was."""
    return str(json.loads(text).get("refused", ""))


def step_json(said: str) -> str:
    """The request of a stored step, which is no request to a model; `is_step` tells it apart."""
    return json.dumps({"step": said})


def is_step(text: str) -> bool:
    """Whether the request of a stored exchange is a step within one."""
    return text.startswith('{"step": ')
