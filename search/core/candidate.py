"""A candidate: a kernel to try, and its origin."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ir.digest import text_digest
from search.core.trial import Trial, trial


@dataclass(frozen=True, slots=True)
class Origin:
    """The operator and the parents that made a candidate."""

    operator: str
    # Keys. The first is the parent that it resembles most. Empty for a seed candidate.
    parents: tuple[str, ...] = ()
    note: str = ""  # a description by the operator
    tag: str = ""  # a label of the policy, such as the island of the candidate
    prompt: str = ""  # digest of the prompt regions that the model saw
    trial: Trial | None = None  # its parameter values, if the answer of a model had parameters


@dataclass(frozen=True, slots=True)
class Candidate:
    """A variant with a schedule, for one target and one backend."""

    variant: str  # text of a spec that is equivalent to the spec of the search
    schedule: str  # text of a schedule
    target: str
    backend: str
    # The source, if a person or a model edited it; None: emitted from the schedule.
    source: str | None = None
    # Not part of the candidate's identity: it is not compared and not in the key.
    origin: Origin = field(default=Origin("given"), compare=False)
    key: str = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        parts = [self.variant, self.schedule, self.target, self.backend, self.source]
        object.__setattr__(self, "key", text_digest(json.dumps(parts)))

    def table(self) -> dict[str, Any]:
        """The candidate as plain data, for a store or for another process."""
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
    """The candidate of a table that `Candidate.table` made."""
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
