"""A slot: what a node of a cluster runs for a search. It evaluates one candidate at a time."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ir.digest import text_digest
from ir.errors import KernelError
from search.core.candidate import Candidate, candidate
from search.core.evaluation import Evaluated, from_json, to_json
from search.evaluator.local import LocalEvaluator

TEXTS = ("variant", "schedule", "source")  # of a candidate's table
INLINE = 4096  # characters of a text that travels inside the call, not by digest


@dataclass(frozen=True, slots=True)
class Opened:
    """What a slot says of itself once it can evaluate, as plain values."""

    node: str  # the cluster's name for it
    host: str  # for a person
    contexts: Mapping[str, str]  # as `LocalEvaluator` has them on the node
    environment: Mapping[str, Any]


class Slot:
    """Evaluates in a process of the node's own, in the sandbox, as a local search does."""

    def __init__(self) -> None:
        self._local: LocalEvaluator | None = None

    def open(self, node: str, host: str, benches: bytes) -> Opened | KernelError:
        """Starts the worker. node, host: see `Opened`.  benches: pickled. A KernelError where none
        can be set up."""
        try:
            self._local = LocalEvaluator(pickle.loads(benches), workers=1)
        except KernelError as error:
            return error
        local = self._local
        return Opened(node, host, dict(local.contexts), dict(local.environment))

    def evaluate(self, asked: str, *texts: str) -> str:
        """The outcome of a candidate, as JSON. asked, texts: of `packed`, with the texts in the
        place of their keys."""
        assert self._local is not None, "a slot is opened before it evaluates"
        ((_, outcome),) = self._local.evaluate([unpacked(asked, texts)])
        return to_json(outcome)


def packed(asked: Candidate) -> tuple[str, Mapping[str, str]]:
    """A candidate as JSON, and its long texts by digest, which the JSON refers to."""
    table, texts = asked.table(), {}
    places: dict[str, int] = {}
    for name in TEXTS:
        text = table[name]
        if text is None or len(text) <= INLINE:
            continue
        digest = text_digest(text)
        texts[digest] = text
        table[name] = None
        places[name] = list(texts).index(digest)
    return json.dumps({"table": table, "places": places}), texts


def unpacked(asked: str, texts: Sequence[str]) -> Candidate:
    """The candidate that `packed` took apart. texts: in the order of that."""
    found = json.loads(asked)
    return candidate(found["table"] | {n: texts[at] for n, at in found["places"].items()})


def outcome(answer: str) -> Evaluated:
    """What a slot answered."""
    return from_json(answer)
