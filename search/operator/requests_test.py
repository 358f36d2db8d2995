"""A hundred requests: no two prompts are the same, and no valid answer is dropped."""

import itertools
import threading
from collections import Counter

from ir.autoschedule.autoschedule import autoschedule
from ir.print import spec_text
from search.core.candidate import Candidate, Origin
from search.core.evaluation import Evaluation
from search.core.graph import Graph
from search.core.testing import CHIP, SIZES, SPEC
from search.llm.exchange import Answer
from search.loop.asking import TWICE, Asking
from search.loop.context import Context, GaveUp, Parent
from search.loop.requests import Requests
from search.loop.state import Proposal, State
from search.operator.universal import Language, Universal
from search.prompt.archive import Prompts
from search.prompt.knowledge import Library
from search.prompt.synthesis import Writer

BATCH, GENERATIONS = 8, 13
WRITER = Writer("scaled_matmul", CHIP, SIZES, (SIZES,), 1.0, "Tongue", Library(()))
ROOT = Candidate(
    spec_text(SPEC), str(autoschedule(SPEC, CHIP, SIZES)), "chip", "tongue", origin=Origin("first")
)


class First:
    """Always changes the first candidate."""

    def ask(self, state, count, rng):
        return [Proposal("universal", (ROOT.key,))] * count


def asked(model, generations=GENERATIONS, us=lambda number: 5.0):
    """The children of some generations, what came to nothing, and what was asked for."""
    graph, outcomes, requests = (
        Graph(),
        {ROOT.key: Evaluation(9.0, "simulated", "simulator")},
        Requests(),
    )
    graph.add(ROOT)
    made, unmade = [], []
    operator = Universal(
        ask=model,
        model=lambda rng: "tiny",
        languages={"tongue": Language(WRITER, "kernel.tng")},
        source=lambda c: c.source or "slow\n",
        prompts=Prompts(),
        surfaces={"source": 1.0},
        repairs=0.0,
    )

    def context(proposal):
        parents = tuple(Parent(graph.node(k), outcomes.get(k)) for k in proposal.parents)
        memory = requests.memory
        return Context(SPEC, CHIP, SIZES, parents, graph, outcomes, memory=memory)

    for generation in range(1, generations + 1):
        requests.begin(generation)
        lost = []
        asking = Asking(
            First(), {"universal": operator}, context, graph.add, lost.append, requests.add
        )
        children = asking.ask(lambda: State(1, graph, None, {}, ()), BATCH, f"1/{generation}")
        tuple(requests.close(lost, 0.0))
        outcomes |= {
            c.key: Evaluation(us(len(made) + n), "simulated", "simulator")
            for n, c in enumerate(children)
        }
        made += children
        unmade += lost
    return made, unmade


class Numbered:
    """Answers each request with a source of its own."""

    def __init__(self):
        self.prompts, self._numbers, self._lock = [], itertools.count(), threading.Lock()

    def __call__(self, request):
        with self._lock:
            self.prompts.append(request.prompt)
            number = next(self._numbers)
        return Answer(
            f">>>>>>> FILE kernel.tng\nfast {number}\n<<<<<<< END\n", 9, 9, 0.0, "stop", 0.1
        )


class Same(Numbered):
    """Answers all requests alike."""

    def __call__(self, request):
        self.prompts.append(request.prompt)
        return Answer(">>>>>>> FILE kernel.tng\nfast\n<<<<<<< END\n", 9, 9, 0.0, "stop", 0.1)


def test_of_a_hundred_requests_all_prompts_differ_and_all_valid_answers_are_taken():
    model = Numbered()
    made, unmade = asked(model)
    assert len(model.prompts) == len(set(model.prompts)) == BATCH * GENERATIONS >= 100
    assert len({c.key for c in made}) == BATCH * GENERATIONS and not unmade


def test_prompts_differ_although_nothing_new_comes_of_them():
    model = Same()
    made, unmade = asked(model, generations=3)
    assert len(made) == 1
    assert Counter(u.reason for u in unmade)[TWICE] == BATCH - 1
    first = [p for p in model.prompts if "[assistant]" not in p]
    assert len(first) == len(set(first)) > 3 * BATCH
    assert f" more): {TWICE}" in first[-1] and all(isinstance(u, GaveUp) for u in unmade)


def test_the_fastest_source_is_in_the_next_prompts():
    model = Numbered()
    made, _ = asked(model, generations=2, us=lambda number: 3.0 if number == 5 else 7.0)
    later = model.prompts[BATCH:]
    (text,) = made[5].source.splitlines()
    assert all(f"to read only):\n````tongue\n{text}\n````" in p for p in later)
    assert all("3 us (chip, simulated), 0.333 times the 9 us of" in p for p in later)
    assert all(f"-slow\n+{text}" in p for p in later)
