"""A replay: returns the answers of a stored run to the same requests, without sending any."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Sequence
from os.path import commonprefix

from ir.errors import KernelError
from search.core.stored import StoredExchange
from search.llm.exchange import Answer, ModelError, Request, is_step, reply_of, request_of
from search.llm.ledger import Ledger

SHOWN = 80  # characters of a line in an error


class Replay:
    """A client with the answers of a stored run; see `client.Client`.

    Errors are raised again. A request that the run never made raises a KernelError and not a
    ModelError, because the replay would become another run.
    """

    def __init__(self, run: str, exchanges: Sequence[StoredExchange], ledger: Ledger):
        """run: the name of the run of these exchanges."""
        self._run = run
        steps = [e for e in exchanges if is_step(e.request)]
        self._steps = {(e.digest, e.rank): e for e in steps}
        self._stored = {(e.digest, e.rank): e for e in exchanges if not is_step(e.request)}
        self._ledger = ledger
        self._lock = threading.Lock()
        self._asked: Counter[str] = Counter()

    def complete(self, request: Request) -> Answer:
        """The stored answer to this request."""
        digest = request.digest
        with self._lock:
            rank = self._asked[digest]
            self._asked[digest] += 1
        stored = self._stored.get((digest, rank))
        if stored is None:
            raise self._missing(request, rank)
        reply = reply_of(stored.reply)
        self._ledger.add(request.model, reply)
        if isinstance(reply, ModelError):
            raise reply
        return reply

    def step(self, digest: str, rank: int) -> str:
        """The stored result of a step."""
        stored = self._steps.get((digest, rank))
        if stored is None:
            raise self._error(f"step {digest} within an exchange is not stored")
        return str(json.loads(stored.reply)["result"])

    def left(self) -> tuple[StoredExchange, ...]:
        """The exchanges that were not requested again so far."""
        with self._lock:
            asked = dict(self._asked)
        return tuple(e for e in self._stored.values() if e.rank >= asked.get(e.digest, 0))

    def _missing(self, request: Request, rank: int) -> KernelError:
        made = f"request {request.digest} to `{request.model}`"
        if rank and (request.digest, 0) in self._stored:
            return self._error(f"{made} is made {rank + 1} times, and was made {rank} times")
        left = [request_of(e.request) for e in self.left()]
        if not left:
            return self._error(f"{made} is one more than the {len(self._stored)} that are stored")
        nearest = max(left, key=lambda r: _alike(r, request))
        return self._error(f"{made} is not stored; {difference(request, nearest)}")

    def _error(self, what: str) -> KernelError:
        return KernelError(
            what,
            where=f"replay of `{self._run}`",
            allowed="the settings, the prompts and the code that the run was made with",
            hint="replay with these, or search anew",
        )


def difference(now: Request, then: Request) -> str:
    """The first difference between a request and a stored one, in words."""
    for name in ("model", "temperature", "max_tokens", "effort"):
        new, old = getattr(now, name), getattr(then, name)
        if new != old:
            return f"the nearest has {name} {old}, and not {new}"
    for number, (new, old) in enumerate(zip(now.messages, then.messages, strict=False), 1):
        if new != old:
            where = f"message {number} ({new.role})"
            return f"the nearest differs in {where}, {_lines(new.content, old.content)}"
    if len(now.messages) != len(then.messages):
        return f"the nearest has {len(then.messages)} messages, and not {len(now.messages)}"
    return f"the nearest has seed {then.seed}, and not {now.seed}"


def _lines(new: str, old: str) -> str:
    """The first line in which two texts differ."""
    ours, theirs = new.split("\n"), old.split("\n")
    same = next((n for n, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), None)
    at = min(len(ours), len(theirs)) if same is None else same
    return f"line {at + 1}: now {_shown(ours, at)}, then {_shown(theirs, at)}"


def _shown(lines: list[str], at: int) -> str:
    if at >= len(lines):
        return "nothing more"
    line = lines[at]
    return f"`{line}`" if len(line) <= SHOWN else f"`{line[:SHOWN]}...`"


def _alike(stored: Request, request: Request) -> tuple[bool, int]:
    alike = len(commonprefix([stored.prompt, request.prompt]))
    return stored.model == request.model, alike
