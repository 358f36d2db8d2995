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
    """One request."""

    # One of KINDS, SURFACES, RECALLS.
    kind: str
    surface: str
    recall: str  # whose history is told
    files: Mapping[str, str]  # by name, those that may be edited
    shown: Mapping[str, str] = field(default_factory=dict)  # those to read only
    hint: str = ""  # the policy's words
    failure: Failure | None = None  # of what is to be repaired
    transferred: Transferred | None = None  # what is to be translated
    other: str = ""  # the source of what is to be combined with it

    def __post_init__(self) -> None:
        for word, known in ((self.kind, KINDS), (self.surface, SURFACES), (self.recall, RECALLS)):
            if word not in known:
                raise ValueError(f"{word!r} is none of {', '.join(known)}")
