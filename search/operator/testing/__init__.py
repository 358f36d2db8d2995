"""Test fixtures: the universal operator for a small kernel, and models that answer it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ir.autoschedule.autoschedule import autoschedule, plain
from ir.print import spec_text
from search.core.candidate import Candidate, Origin
from search.core.graph import Graph
from search.core.testing import CHIP, SIZES, SPEC
from search.llm.exchange import Answer, ModelError, Request
from search.loop.context import Context, Parent, nest_digest
from search.operator.universal import Language, Universal
from search.prompt.archive import Prompts
from search.prompt.knowledge import Library
from search.prompt.synthesis import Writer

WRITER = Writer("scaled_matmul", CHIP, SIZES, (SIZES,), 1.0, "Tongue", Library(()))
ROOT = Candidate(
    spec_text(SPEC), str(autoschedule(SPEC, CHIP, SIZES)), "chip", "tongue", origin=Origin("first")
)
OTHER = replace(ROOT, schedule=str(plain(SPEC, CHIP, SIZES)), origin=Origin("plain"))
NONSENSE = "I would use larger tiles."


def edit(file, old, new):
    return f"Because.\n<<<<<<< SEARCH {file}\n{old}\n=======\n{new}\n>>>>>>> REPLACE\n"


TILE = edit("schedule.sched", "tile(m, size=16)", "tile(m, size=8)")
SOURCE = ">>>>>>> FILE kernel.tng\nfaster\n<<<<<<< END\n"


class Model:
    """Gives these answers in order, and records the requests."""

    def __init__(self, *answers: str | ModelError):
        self.answers: Sequence[str | ModelError] = answers
        self.asked: list[Request] = []

    def __call__(self, request):
        answer = self.answers[min(len(self.asked), len(self.answers) - 1)]
        self.asked.append(request)
        if isinstance(answer, ModelError):
            raise answer
        return Answer(answer, 10, 10, 0.0, "stop", 0.1)


def universal(model, surface="schedule", **more):
    made = Universal(
        ask=model,
        model=lambda rng: "tiny",
        languages={"tongue": Language(WRITER, "kernel.tng")},
        source=lambda c: c.source or "slow\n",
        prompts=Prompts(),
        surfaces={surface: 1.0},
    )
    return replace(made, **more)


def context(*parents, outcomes=None, others=(), transferred=()):
    graph = Graph()
    for c in (*dict.fromkeys((ROOT, *parents, *others)),):
        graph.add(c, nest_digest(c, CHIP, SIZES))
    outcomes = outcomes or {}
    found = tuple(Parent(p, outcomes.get(p.key)) for p in parents)
    return Context(SPEC, CHIP, SIZES, found, graph, outcomes, transferred=transferred)
