"""Prompts for all surfaces and backends are golden texts, from which an engineer could answer.

They are made as in a search: the kernel is the autoschedule's; its time and timeline are simulated or
modelled where that needs no device. Only the times of its children are made up. Renew them with
--update-golden, and read them.
"""

import random
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from backends.backend import ModelsTime
from backends.registry import backend, served_by, target
from backends.served import Served
from ir.autoschedule.autoschedule import autoschedule, plain
from ir.estimate.cost import roofline
from ir.estimate.estimate import intensity
from ir.print import spec_text
from ir.reference.inputs import random_inputs
from search.cli.models import writer_of
from search.cli.promote import source
from search.cli.suite import Problem
from search.cli.traces import trace
from search.core.candidate import Candidate, Origin
from search.core.evaluation import Evaluation, Failure
from search.core.graph import Graph
from search.core.lowered import nest_of, spec_of
from search.core.settings import Settings
from search.llm.exchange import ModelError
from search.loop.context import Context, GaveUp, Memory, Parent, Refused
from search.operator.universal import Language, Universal
from search.prompt.archive import Prompts
from search.prompt.budget import tokens
from search.prompt.document import SURFACES
from search.prompt.timeline import timeline
from testing.samples.samples import workload

GOLDEN = "search/cli/golden/prompts"
SHOWN = {  # the kernel and the target in a backend's prompt
    "sim": ("attention", "npu"),
    "cpp": ("softmax", "cpu"),
    "triton": ("rmsnorm_matmul", "h200"),
    "cuda": ("rmsnorm_matmul", "h200"),
    "cutedsl": ("rmsnorm_matmul", "h200"),
    "hip": ("softmax", "mi300"),
}
MEMORY = Memory(
    2,
    ("improve the schedule of 0123abcd, 9.5 us",),
    (Refused("improve the source of 0123abcd, 9.5 us", "the edits change nothing"),),
)


class Asks:
    """Records a request, and gives no answer."""

    def __init__(self):
        self.requests = []

    def __call__(self, request):
        self.requests.append(request)
        raise ModelError("gone", "nobody answers")


@cache
def shown(name):
    """The problem of a backend, its first candidate and the outcome."""
    kernel, at = SHOWN[name]
    w, made = workload(kernel), backend(name)
    machine = served_by(target(at), made)
    settings = Settings(kernel, spec_text(w.spec), at, (name,), w.tune, tuple(w.checks))
    problem = Problem(settings, {name: Served(made, machine)}, w.tune, True)
    schedule = str(autoschedule(w.spec, machine, w.tune))
    first = Candidate(settings.spec, schedule, at, name, origin=Origin("first"))
    return problem, first, outcome(problem, first)


def outcome(problem, candidate):
    """The outcome of a candidate as far as it needs no device; None if times are measured."""
    served, sizes = problem.served[candidate.backend], problem.settings.sizes
    nest = nest_of(candidate, served.machine, sizes)
    facts = intensity(nest, served.machine, sizes)
    least = roofline(spec_of(problem.settings.spec), served.machine, sizes).bytes
    if candidate.backend == "sim":
        timing = simulated(served, nest, sizes)
    elif isinstance(served.backend, ModelsTime):
        timing = served.backend.model(nest, served.machine, sizes, {})
    else:
        return None
    figures = {**timing.figures, **facts, "least_bytes": float(least)}
    by = served.backend.manifest.correct_by[-1]
    return Evaluation(timing.us, timing.kind, by, figures=figures, engines=dict(timing.engines))


def simulated(served, nest, sizes):
    import tempfile

    import numpy as np

    own = served.backend
    with tempfile.TemporaryDirectory() as folder:
        built = own.build(own.emit(nest, served.machine), nest, served.machine, Path(folder))
        inputs = random_inputs(nest.spec, sizes, np.random.default_rng(0))
        return own.time(built, nest, served.machine, sizes, inputs)


def context(problem, first, found):
    """The first candidate with children: one that is as fast, one whose source was edited, one that
    failed."""
    machine = problem.served[first.backend].machine
    spec, sizes = spec_of(first.variant), problem.settings.sizes
    origin = Origin("mutate", (first.key,))
    slow = replace(first, schedule=str(plain(spec, machine, sizes)), origin=origin)
    text = source(problem, first)
    lines = text.splitlines(keepends=True)
    edited = replace(
        first,
        source="".join([*lines[:-1], "\n", lines[-1]]),
        origin=Origin("universal", (first.key,), "Leave a line."),
    )
    wrong = replace(
        first, source=text + "\n\n", origin=Origin("universal", (first.key,), "Two lines.")
    )
    graph = Graph()
    outcomes = {first.key: found} if found else {}
    if found:
        outcomes[slow.key] = replace(found, us=2 * found.us)
        outcomes[edited.key] = replace(found, us=0.9 * found.us)
    outcomes[wrong.key] = Failure("check", "wrong", "off by 0.3 at the first check size")
    for c in (first, slow, edited, wrong):
        graph.add(c)
    parents = (Parent(first, outcomes.get(first.key)),)
    return Context(spec, machine, sizes, parents, graph, outcomes, memory=MEMORY)


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("name", SHOWN)
def test_the_prompt_is_the_golden_text(name, surface, golden):
    problem, first, found = shown(name)
    served, asks = problem.served[name], Asks()
    writer = writer_of(problem, served, ())
    operator = Universal(
        ask=asks,
        model=lambda rng: "tiny",
        languages={name: Language(writer, f"kernel.{served.backend.manifest.extension}")},
        source=lambda c: source(problem, c),
        prompts=Prompts(),
        profile=lambda c: timeline(trace(problem, c)),
        repairs=0.0,
        surfaces={surface: 1.0},
    )
    assert isinstance(operator.propose(context(problem, first, found), random.Random(1)), GaveUp)
    (request,) = asks.requests
    system, user = (m.content for m in request.messages)
    golden(f"{GOLDEN}/{name}/{surface}.md", f"{system}\n---\n\n{user}")
    assert source(problem, first).strip() in user and tokens(user) < writer.tokens
