"""A brief: what a model is asked to do with which texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from search.core.evaluation import Failure
from search.core.transferred import Transferred
from search.prompt.document import SURFACES
from search.prompt.history import History

KINDS = ("draft", "repair", "improve", "combine", "translate")
# Where one of several requests for the same kernel looks first, so that each has an idea of its own.
ANGLES = (
    "the critical path: what runs before the first result, and after the last byte",
    "bytes: what is moved twice, or in a wider format than it needs",
    "overlap: which engine waits for which, and what could be in flight earlier",
    "work: conversions, masks and special functions that are computed more often than needed",
    "parallelism: the number and the order of tiles, and processors that idle at the end",
)
SCHEDULE, VARIANT = "schedule.sched", "variant.kir"


@dataclass(frozen=True, slots=True)
class Brief:
    """One request."""

    # One of KINDS, SURFACES.
    kind: str
    surface: str
    history: History
    files: Mapping[str, str]  # by name, those that may be edited
    shown: Mapping[str, str] = field(default_factory=dict)  # those to read only
    hint: str = ""  # the policy's words
    failure: Failure | None = None  # of what is to be repaired
    transferred: Transferred | None = None  # what is to be translated
    timeline: tuple[str, ...] = ()  # of the parent, in lines
    angle: str = ""  # where to look first
    other: str = ""  # the source of what is to be combined with it

    def __post_init__(self) -> None:
        for word, known in ((self.kind, KINDS), (self.surface, SURFACES)):
            if word not in known:
                raise ValueError(f"{word!r} is none of {', '.join(known)}")
