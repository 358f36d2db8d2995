"""Idle changes: what was changed before in this search, and left the time as it was.

Many a decision does nothing for a kernel: the stages of what is loaded once, the order of loops that run
once, a hint that the machine does not follow. Which do is known when a child takes exactly the time of its
parent. The same holds for decisions that a time model or a simulator does not see: of changes that leave the
estimate as it was, most leave its time too. On a device no two times are the same, so that no change is ever
idle there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from ir.schedule import Schedule
from search.core.candidate import Candidate
from search.core.evaluation import Evaluated, Evaluation
from search.core.graph import Graph
from search.core.lowered import schedule_of

SAME = 1e-9  # relative: times that are equal
IDLE = 0.5  # the share of changes with an effect below which those of a sort are idle
UNNOTICED = "unnoticed"  # changes of all sorts that leave the estimate as it was
# The share of these with an effect, before one was tried: where times are measured, as the estimate leaves
# out much that matters, and where they are computed.
ON_DEVICE, COMPUTED = 1.0, 0.4

Sort = tuple[str, str]  # of a decision: its verb and its subject


@dataclass(frozen=True, slots=True)
class Effects:
    """How many changes had an effect on the time in a search, and how many had none."""

    # By sort, by verb, and of all that are unnoticed.
    live: Mapping[str | Sort, float] = field(default_factory=dict)
    idle: Mapping[str | Sort, float] = field(default_factory=dict)
    untried: float = (
        ON_DEVICE  # the share of unnoticed changes with an effect, before one was tried
    )

    def share(self, sort: Sort, unnoticed: bool) -> float:
        """The share of changes of a sort that are expected to have an effect: that of the unnoticed ones
        where it is one, then more and more that of its verb, and its own."""
        of_all = self._share(UNNOTICED, self.untried) if unnoticed else 1.0
        return self._share(sort, self._share(sort[0], of_all))

    def _share(self, key: str | Sort, before: float) -> float:
        live, idle = self.live.get(key, 0.0), self.idle.get(key, 0.0)
        return (before + live) / (1.0 + live + idle)

    def are_idle(self, sorts: Collection[Sort], unnoticed: bool) -> bool:
        """Whether changes of these sorts, made together, are expected to have none."""
        return all(self.share(sort, unnoticed) < IDLE for sort in sorts)


def effects(
    graph: Graph,
    outcomes: Mapping[str, Evaluated],
    unnoticed: Callable[[Candidate, Candidate], bool],
) -> Effects:
    """What the changes of all children showed that differ from their first parent in decisions alone.

    unnoticed: whether the estimate does not tell two candidates apart. Of several changes with an effect
    together it is not known which had it: they share it.
    """
    live: defaultdict[str | Sort, float] = defaultdict(float)
    idle: defaultdict[str | Sort, float] = defaultdict(float)
    kinds = {o.time_kind for o in outcomes.values() if isinstance(o, Evaluation)}
    for key, outcome in outcomes.items():
        child = graph.node(key) if key in graph else None
        if child is None or not child.origin.parents or not isinstance(outcome, Evaluation):
            continue
        parent, before = graph.node(child.origin.parents[0]), outcomes.get(child.origin.parents[0])
        if not isinstance(before, Evaluation) or not _alike(child, parent):
            continue
        sorts = changed(schedule_of(parent.schedule), schedule_of(child.schedule))
        same = same_us(outcome.us, before.us)
        into, weight = (idle, 1.0) if same else (live, 1.0 / max(1, len(sorts)))
        for sort in sorts:
            into[sort] += weight
            into[sort[0]] += weight
        if unnoticed(parent, child):
            into[UNNOTICED] += 1.0
    computed = bool(kinds) and kinds.isdisjoint({"measured"})
    return Effects(live, idle, COMPUTED if computed else ON_DEVICE)


def same_us(one: float, other: float) -> bool:
    """Whether two times are equal."""
    return abs(one - other) <= SAME * other


def _alike(one: Candidate, other: Candidate) -> bool:
    """Whether two candidates differ in decisions alone."""
    own = one.source is not None or other.source is not None
    return not own and (one.variant, one.backend) == (other.variant, other.backend)


@lru_cache(maxsize=4096)
def changed(before: Schedule, after: Schedule) -> frozenset[Sort]:
    """The sorts of the decisions in which two schedules differ; a new place in the order counts too."""
    known, made = before.decisions, after.decisions
    differ = set(known) ^ set(made) or {d for d, other in zip(made, known) if d != other}
    return frozenset((d.verb, d.subject) for d in differ)
