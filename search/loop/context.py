"""The interface of operators: their context and their results."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Protocol

from ir.digest import text_digest
from ir.errors import KernelError
from ir.estimate.estimate import estimate
from ir.lower.verb_table import canonical
from ir.machine import Machine
from ir.schedule import Schedule
from ir.spec import Spec
from ir.workload import Sizes
from search.core.candidate import Candidate, Origin
from search.core.evaluation import Evaluated
from search.core.graph import Graph
from search.core.lowered import (
    nest_of,
    schedule_of,
    schedule_text,
    settled_schedule,
    spec_of,
    variant_text,
)
from search.core.transferred import Transferred
from search.core.workload import WeightedShape, mean
from search.loop.forecast import Neighbour, correction, neighbours
from search.warm_start.adapt import adapted


@dataclass(frozen=True, slots=True)
class Parent:
    """A candidate to work from, with its outcome (None: not known)."""

    candidate: Candidate
    outcome: Evaluated | None = None

    @property
    def schedule(self) -> Schedule:
        """The candidate's schedule as a value."""
        return schedule_of(self.candidate.schedule)

    @property
    def variant(self) -> Spec:
        """The candidate's equations as a value."""
        return spec_of(self.candidate.variant)


@dataclass(frozen=True, slots=True)
class Refused:
    """A request that gave no candidate."""

    asked: str  # the request in words
    reason: str
    answer: str = ""  # the last answer, shortened
    prompt: str = ""  # digest of the prompt regions that the model saw


@dataclass(frozen=True, slots=True)
class Memory:
    """The earlier requests to models."""

    number: int = 0  # number of this request
    requested: tuple[str, ...] = ()  # requests in flight, in words; their answers are not known yet
    refused: tuple[Refused, ...] = ()  # requests that gave nothing, in order


@dataclass(frozen=True, slots=True)
class Context:
    """The input of an operator: the problem, at least one parent, and the outcomes so far."""

    # The spec of the problem; the variant of a parent may have other equations.
    spec: Spec
    machine: Machine
    sizes: Sizes
    parents: tuple[Parent, ...]
    graph: Graph
    # By candidate key.
    outcomes: Mapping[str, Evaluated] = field(default_factory=dict)
    hint: str = ""  # words of the policy for an operator that asks a model
    # Weighted shapes besides `sizes` that a child must fit at; empty: one shape.
    workload: tuple[WeightedShape, ...] = ()
    # Results of other machines and earlier runs for the same kernel.
    transferred: tuple[Transferred, ...] = ()
    # The child's backend, which may differ from the first parent's; empty: the same.
    backend: str = ""
    memory: Memory = Memory()
    # At most one entry, computed on first use.
    _neighbours: list[tuple[Neighbour, ...]] = field(
        default_factory=list, init=False, compare=False, repr=False
    )

    def frozen(self) -> Context:
        """An independent copy that later changes do not affect."""
        return replace(self, graph=self.graph.copy(), outcomes=dict(self.outcomes))

    @property
    def serving(self) -> str:
        """The name of the child's backend."""
        return self.backend or self.parents[0].candidate.backend

    def unedited(self) -> Context:
        """The context with each edited source replaced by the candidate that it was edited from,
        because its schedule no longer describes it."""
        return replace(self, parents=tuple(self._origin_of(parent) for parent in self.parents))

    def _origin_of(self, parent: Parent) -> Parent:
        if parent.candidate.source is None:
            return parent
        line = reversed(self.graph.lineage(parent.candidate.key))
        found = next((c for c in line if c.source is None), None)
        return parent if found is None else Parent(found, self.outcomes.get(found.key))

    def offer(self, schedule: Schedule, operator: str, note: str) -> Candidate | GaveUp:
        """A child with the first parent's variant and another schedule in canonical order.

        Gives up if it does not lower, or if its result was tried before.
        """
        variant = self.parents[0].candidate.variant
        found = settled_schedule(variant, canonical(schedule), self.machine, self.sizes)
        return self._offer(variant, schedule_text(found), None, operator, note)

    def offer_variant(
        self, variant: Spec, operator: str, note: str, schedule: Schedule | None = None
    ) -> Candidate | GaveUp:
        """A child with other equations, and with the decisions of `schedule` (None: the first
        parent's) that lower there.

        Gives up if the variant's inputs or outputs differ from the spec's, if nothing lowers, or if
        it was tried before.
        """
        if (variant.inputs, variant.outputs) != (self.spec.inputs, self.spec.outputs):
            return GaveUp("it takes or returns other tensors than the spec does")
        wanted = self.parents[0].schedule if schedule is None else schedule
        try:
            found = adapted(variant, wanted, self.machine, self.sizes)
        except KernelError as error:
            return GaveUp(error.what)
        text = schedule_text(canonical(found))
        return self._offer(variant_text(variant), text, None, operator, note)

    def offer_source(self, source: str, operator: str, note: str) -> Candidate | GaveUp:
        """A child with the first parent's schedule and an edited source."""
        first = self.parents[0].candidate
        return self._offer(first.variant, first.schedule, source, operator, note)

    def _offer(
        self, variant: str, schedule: str, source: str | None, operator: str, note: str
    ) -> Candidate | GaveUp:
        first = self.parents[0].candidate
        child = Candidate(
            variant=variant,
            schedule=schedule,
            target=first.target,
            backend=self.serving,
            source=source,
            origin=Origin(
                operator, tuple(dict.fromkeys(p.candidate.key for p in self.parents)), note
            ),
        )
        if child.key in self.graph:
            return GaveUp("it was tried before")
        try:
            nest = nest_digest(child, self.machine, self.sizes)
            for shape in self.workload:
                nest_of(child, self.machine, shape.sizes)
        except KernelError as error:
            return GaveUp(error.what)
        if self.graph.has_nest(nest):
            return GaveUp("another schedule comes to the same")
        return child

    def expected_us(self, candidate: Candidate) -> float:
        """The estimated time of a candidate from its loop nest, corrected by the outcomes of
        similar ones, in microseconds. It is a hint and never a result."""
        if not self._neighbours:
            self._neighbours.append(neighbours(self._known()))
        return self._estimate(candidate) * correction(candidate, self._neighbours[0])

    def _known(self) -> Iterator[tuple[Candidate, float, float]]:
        """All candidates with a known time, with that time and the estimate."""
        for key, outcome in self.outcomes.items():
            if outcome.us is not None:
                candidate = self.graph.node(key)
                try:
                    yield candidate, outcome.us, self._estimate(candidate)
                except KernelError:  # an edited source, whose schedule may not lower
                    continue

    def _estimate(self, candidate: Candidate) -> float:
        shapes = self.workload or (WeightedShape(self.sizes),)
        each = [_estimated(_Case(candidate, s.sizes, self.machine)) for s in shapes]
        return mean(each, shapes)


def nest_digest(candidate: Candidate, machine: Machine, sizes: Sizes) -> str:
    """The digest of a candidate's lowered result: equal for schedules of a backend that differ only
    in their text.

    Raises KernelError if it does not lower. An edited source is part of the digest.
    """
    nest = nest_of(candidate, machine, sizes)
    return text_digest(f"{candidate.backend}{nest.launches!r}{candidate.source or ''}")


@dataclass(frozen=True, slots=True)
class GaveUp:
    """An operator has no child to offer, and the reason."""

    reason: str
    unanswered: bool = False  # because a model gave no answer
    asked: str = ""  # the request in words; empty if no model was asked
    answer: str = ""  # the last refused answer, shortened
    prompt: str = ""  # digest of the prompt regions that the model saw


@dataclass(frozen=True, slots=True)
class Pending:
    """A request to a model that is prepared and not sent."""

    asked: str  # in words, for the requests that are prepared after it
    answer: Callable[[], Candidate | GaveUp]  # sends the request and waits for the answer


class NotInstalled(KernelError):
    """An operator lacks a package, so that none of its proposals can succeed."""


class Halted(Exception):
    """Ends the run because no later request can succeed; its results stay.

    error: the reason. spent: whether the user's budget is used up, which is a normal end.
    """

    def __init__(self, error: KernelError, spent: bool):
        super().__init__(error.what)
        self.error = error
        self.spent = spent


class Operator(Protocol):
    """Makes one child of the given parents.

    The child is new to the context's graph, and its schedule lowers. The child depends only on the
    context, the generator and the answers of models.
    """

    @property
    def name(self) -> str:
        """The name in the graph and on the command line."""

    @property
    def parents(self) -> int:
        """The number of parents that it needs."""

    @property
    def remote(self) -> bool:
        """Whether it asks a model."""

    def propose(self, context: Context, rng: random.Random) -> Candidate | GaveUp:
        """A child, or the reason why there is none."""


class ModelOperator(Operator, Protocol):
    """An operator that asks a model in two steps. The second step waits for the answer in its own
    thread."""

    def prepare(self, context: Context, rng: random.Random) -> Pending | GaveUp:
        """Prepares the request that `propose` sends. The context does not change afterwards."""


class _Case:
    """A cache key: a candidate at some sizes on a machine, which is compared by identity."""

    def __init__(self, candidate: Candidate, sizes: Sizes, machine: Machine):
        self.candidate, self.sizes, self.machine = candidate, sizes, machine
        self.key = (candidate.key, tuple(sizes.items()), id(machine))

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Case) and self.key == other.key


@lru_cache(maxsize=4096)
def _estimated(case: _Case) -> float:
    nest = nest_of(case.candidate, case.machine, case.sizes)
    return estimate(nest, case.machine, case.sizes)
