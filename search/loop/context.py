"""What an operator is given, what it gives back, and the promise it keeps."""

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
    """A candidate to work from, and what became of it (None: not known)."""

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
    """A request of which no candidate came."""

    asked: str  # what was asked, in words
    reason: str
    answer: str = ""  # the last, shortened
    prompt: str = ""  # digest of the prompt regions that the model saw


@dataclass(frozen=True, slots=True)
class Memory:
    """What was asked of models before."""

    number: int = 0  # of the request
    requested: tuple[str, ...] = ()  # in flight, in words; their answers are not known
    refused: tuple[Refused, ...] = ()  # of which nothing came, in their order


@dataclass(frozen=True, slots=True)
class Context:
    """The problem, the parents (at least one) and the outcomes so far."""

    # The spec of the problem; the variant of a parent may have other equations.
    spec: Spec
    machine: Machine
    sizes: Sizes
    parents: tuple[Parent, ...]
    graph: Graph
    # By key.
    outcomes: Mapping[str, Evaluated] = field(default_factory=dict)
    hint: str = ""  # of the policy, for an operator that asks a model
    # Weighted shapes besides `sizes` that a child must fit at; empty: one shape.
    workload: tuple[WeightedShape, ...] = ()
    # Results of other machines and earlier runs for the same kernel.
    transferred: tuple[Transferred, ...] = ()
    # That a child is for, which may be another than the first parent's; empty: the first parent's.
    backend: str = ""
    memory: Memory = Memory()
    _neighbours: list[tuple[Neighbour, ...]] = field(
        default_factory=list, init=False, compare=False, repr=False
    )  # at most one: made when it is first asked for

    def frozen(self) -> Context:
        """The same, which knows nothing of what comes later."""
        return replace(self, graph=self.graph.copy(), outcomes=dict(self.outcomes))

    @property
    def serving(self) -> str:
        """The name of the backend that a child is for."""
        return self.backend or self.parents[0].candidate.backend

    def unedited(self) -> Context:
        """With what it was edited from in place of a parent that was edited freely, of which its
        schedule no longer tells."""
        return replace(self, parents=tuple(self._origin_of(parent) for parent in self.parents))

    def _origin_of(self, parent: Parent) -> Parent:
        if parent.candidate.source is None:
            return parent
        line = reversed(self.graph.lineage(parent.candidate.key))
        found = next((c for c in line if c.source is None), None)
        return parent if found is None else Parent(found, self.outcomes.get(found.key))

    def offer(self, schedule: Schedule, operator: str, note: str) -> Candidate | GaveUp:
        """The first parent's variant with another schedule, its decisions in their order.

        Gives up where that does not lower, or comes to what was tried before.
        """
        variant = self.parents[0].candidate.variant
        found = settled_schedule(variant, canonical(schedule), self.machine, self.sizes)
        return self._offer(variant, schedule_text(found), None, operator, note)

    def offer_variant(
        self, variant: Spec, operator: str, note: str, schedule: Schedule | None = None
    ) -> Candidate | GaveUp:
        """Other equations for the spec, with `schedule` (None: the first parent's) as far as it
        lowers there.

        Gives up where the variant takes or returns something else than the spec, where
        nothing lowers, or where it was tried before.
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
        """The first parent with a source of its own, which no longer follows from its schedule."""
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
        """The estimate of a candidate's time from its loop nest, corrected by what became of
        those that are alike: a hint, never a result."""
        if not self._neighbours:
            self._neighbours.append(neighbours(self._known()))
        return self._estimate(candidate) * correction(candidate, self._neighbours[0])

    def _known(self) -> Iterator[tuple[Candidate, float, float]]:
        """All whose time is known, with that and its estimate."""
        for key, outcome in self.outcomes.items():
            if outcome.us is not None:
                candidate = self.graph.node(key)
                try:
                    yield candidate, outcome.us, self._estimate(candidate)
                except KernelError:  # an edited source, whose schedule does not fit
                    continue

    def _estimate(self, candidate: Candidate) -> float:
        shapes = self.workload or (WeightedShape(self.sizes),)
        each = [_estimated(_Case(candidate, s.sizes, self.machine)) for s in shapes]
        return mean(each, shapes)


def nest_digest(candidate: Candidate, machine: Machine, sizes: Sizes) -> str:
    """The digest of what a candidate comes to: equal for schedules of a backend that differ in
    words only.

    KernelError where it does not lower. A source of its own makes it like no other.
    """
    nest = nest_of(candidate, machine, sizes)
    return text_digest(f"{candidate.backend}{nest.launches!r}{candidate.source or ''}")


@dataclass(frozen=True, slots=True)
class GaveUp:
    """An operator had nothing to offer, and why."""

    reason: str
    unanswered: bool = False  # as a model gave no answer
    asked: str = ""  # what a model was asked, in words; empty where none was
    answer: str = ""  # its last that was refused, shortened
    prompt: str = ""  # digest of the prompt regions that it saw


@dataclass(frozen=True, slots=True)
class Pending:
    """A request to a model that is written and not sent."""

    asked: str  # in words, for the requests that are written after it
    answer: Callable[[], Candidate | GaveUp]  # sends it, and waits


class Halted(Exception):
    """No later request of this run can succeed, so it ends; what it found stays.

    error: why.  spent: because what the user allowed is used up, which is as it should be.
    """

    def __init__(self, error: KernelError, spent: bool):
        super().__init__(error.what)
        self.error = error
        self.spent = spent


class Operator(Protocol):
    """Makes one child of the parents it is given.

    The child is new to the graph of the context, and its schedule lowers. The same context, generator
    and answers of models give the same child.
    """

    @property
    def name(self) -> str:
        """How it is named in the graph and by users."""

    @property
    def parents(self) -> int:
        """How many it needs."""

    @property
    def remote(self) -> bool:
        """Whether it asks a model."""

    def propose(self, context: Context, rng: random.Random) -> Candidate | GaveUp:
        """A child, or the reason why there is none."""


class ModelOperator(Operator, Protocol):
    """One that asks a model, in two parts: the second waits for answers, in a thread of its own."""

    def prepare(self, context: Context, rng: random.Random) -> Pending | GaveUp:
        """The request that `propose` sends. The context does not change afterwards."""


class _Case:
    """A candidate at some sizes, on a machine that is the same object each time."""

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
