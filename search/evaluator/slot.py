"""A slot: the process of a search on a node of a cluster. It evaluates one candidate at a time."""

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

TEXTS = ("variant", "schedule", "source")  # texts in a candidate's table
INLINE = 4096  # characters; shorter texts are sent inside the call, longer ones by digest


@dataclass(frozen=True, slots=True)
class Opened:
    """The properties of a slot that is ready, as plain values."""

    node: str  # the cluster's name of the node
    host: str  # its name for a person
    contexts: Mapping[str, str]  # as in `LocalEvaluator` on the node
    environment: Mapping[str, Any]


class Slot:
    """Evaluates in a sandboxed process of the node, as a local search does."""

    def __init__(self) -> None:
        self._local: LocalEvaluator | None = None

    def open(self, node: str, host: str, benches: bytes) -> Opened | KernelError:
        """Starts the worker. Returns a KernelError if it cannot be set up.

        node, host: see `Opened`. benches: pickled.
        """
        try:
            self._local = LocalEvaluator(pickle.loads(benches), workers=1)
        except KernelError as error:
            return error
        local = self._local
        return Opened(node, host, dict(local.contexts), dict(local.environment))

    def evaluate(self, asked: str, *texts: str) -> str:
        """The outcome of a candidate, as JSON. asked, texts: from `packed`, with texts in place of
        their keys."""
        assert self._local is not None, "a slot is opened before it evaluates"
        ((_, outcome),) = self._local.evaluate([unpacked(asked, texts)])
        return to_json(outcome)


def packed(asked: Candidate) -> tuple[str, Mapping[str, str]]:
    """A candidate as JSON, and its long texts by digest, to which the JSON refers."""
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
    """The candidate of a JSON text by `packed`. texts: in the same order."""
    found = json.loads(asked)
    return candidate(found["table"] | {n: texts[at] for n, at in found["places"].items()})


def outcome(answer: str) -> Evaluated:
    """The outcome in a slot's answer."""
    return from_json(answer)
