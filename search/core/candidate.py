"""A candidate: one thing to try, and where it came from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ir.digest import text_digest
from search.core.trial import Trial, trial


@dataclass(frozen=True, slots=True)
class Origin:
    """The operator and the parents that a candidate comes from."""

    operator: str
    # Keys, the parent that it resembles most first; empty for a seed candidate.
    parents: tuple[str, ...] = ()
    note: str = ""  # how, in the words of the operator
    tag: str = ""  # a label of the policy, such as the island of the candidate
    prompt: str = ""  # digest of the prompt regions that the model saw
    trial: Trial | None = None  # where it is of an answer with parameters


@dataclass(frozen=True, slots=True)
class Candidate:
    """A variant with a schedule for a target, through a backend."""

    variant: str  # text of a spec that is equivalent to the one of the search
    schedule: str  # text of a schedule
    target: str
    backend: str
    # The source, where a person or a model edited it; None: emitted from the schedule.
    source: str | None = None
    # No part of the identity of a candidate: neither compared nor in the key.
    origin: Origin = field(default=Origin("given"), compare=False)
    key: str = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        parts = [self.variant, self.schedule, self.target, self.backend, self.source]
        object.__setattr__(self, "key", text_digest(json.dumps(parts)))

    def table(self) -> dict[str, Any]:
        """The candidate as plain data, for a store or a pipe."""
        return {
            "variant": self.variant,
            "schedule": self.schedule,
            "target": self.target,
            "backend": self.backend,
            "source": self.source,
            "operator": self.origin.operator,
            "parents": list(self.origin.parents),
            "note": self.origin.note,
            "tag": self.origin.tag,
            "prompt": self.origin.prompt,
            **({"trial": self.origin.trial.table()} if self.origin.trial else {}),
        }


def candidate(table: Mapping[str, Any]) -> Candidate:
    """The candidate that `Candidate.table` wrote."""
    return Candidate(
        variant=table["variant"],
        schedule=table["schedule"],
        target=table["target"],
        backend=table["backend"],
        source=table["source"],
        origin=Origin(
            operator=table["operator"],
            parents=tuple(table["parents"]),
            note=table["note"],
            tag=table.get("tag", ""),
            prompt=table.get("prompt", ""),
            trial=trial(table["trial"]) if "trial" in table else None,
        ),
    )
