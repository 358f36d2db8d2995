"""A candidate: one thing to try, and where it came from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ir.digest import text_digest


@dataclass(frozen=True, slots=True)
class Origin:
    """Which operator made a candidate of which parents, and in its words how.

    parents: keys, the one that it resembles most first; empty for a first candidate.  tag: a
    policy's own mark, such as the island that a candidate lives on.  prompt: digest of the
    prompt's regions that a model made it under.
    """

    operator: str
    parents: tuple[str, ...] = ()
    note: str = ""
    tag: str = ""
    prompt: str = ""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A variant with a schedule for a target, through a backend.

    variant: the text of a spec, equal in meaning to the one that the search is for.
    schedule: the text of a schedule.  source: a backend's source where it was edited by hand or
    by a model; None where the schedule says all.  origin: not part of what a candidate is, so
    neither compared nor in the key.
    """

    variant: str
    schedule: str
    target: str
    backend: str
    source: str | None = None
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
        ),
    )
