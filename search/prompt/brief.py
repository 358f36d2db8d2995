"""A brief: the task of a model and its texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from search.core.evaluation import Failure
from search.core.transferred import Transferred
from search.prompt.document import SURFACES
from search.prompt.history import History

KINDS = ("draft", "repair", "improve", "combine", "translate")
# What to consider first, so that several requests for the same kernel give different ideas.
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
    """The task of one request."""

    # One of KINDS, SURFACES.
    kind: str
    surface: str
    history: History
    files: Mapping[str, str]  # editable files by name
    shown: Mapping[str, str] = field(default_factory=dict)  # read-only files by name
    hint: str = ""  # words of the policy
    failure: Failure | None = None  # the failure to repair
    transferred: Transferred | None = None  # the kernel to translate
    timeline: tuple[str, ...] = ()  # timeline of the parent, as lines
    angle: str = ""  # what to consider first
    other: str = ""  # source of the kernel to combine with

    def __post_init__(self) -> None:
        for word, known in ((self.kind, KINDS), (self.surface, SURFACES)):
            if word not in known:
                raise ValueError(f"{word!r} is none of {', '.join(known)}")
