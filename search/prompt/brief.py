"""A brief: what a model is asked to do with which texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from search.core.evaluation import Failure
from search.core.transferred import Transferred

KINDS = ("draft", "repair", "improve", "combine", "translate")
SURFACES = ("schedule", "equations", "source")
RECALLS = ("parent", "siblings", "both", "none")
SCHEDULE, VARIANT = "schedule.sched", "variant.kir"


@dataclass(frozen=True, slots=True)
class Brief:
    """One request. kind, surface, recall: one of KINDS, SURFACES, RECALLS.

    recall: whose history is told.  files: by name, those that may be edited.  shown: those to
    read only.  hint: the policy's words.  failure: of what is to be repaired.  transferred: what is
    to be translated.  other: the source of what is to be combined with it.
    """

    kind: str
    surface: str
    recall: str
    files: Mapping[str, str]
    shown: Mapping[str, str] = field(default_factory=dict)
    hint: str = ""
    failure: Failure | None = None
    transferred: Transferred | None = None
    other: str = ""

    def __post_init__(self) -> None:
        for word, known in ((self.kind, KINDS), (self.surface, SURFACES), (self.recall, RECALLS)):
            if word not in known:
                raise ValueError(f"{word!r} is none of {', '.join(known)}")
