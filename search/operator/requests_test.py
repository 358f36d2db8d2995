"""A hundred requests: no two prompts are equal, and no valid answer is dropped."""

import itertools
from dataclasses import replace

from search.core.evaluation import Evaluation
from search.core.testing import CHIP, SETTINGS, SIZES
from search.llm.exchange import Answer
from search.loop.flow import TWICE
from search.loop.run import Search
from search.loop.state import Proposal
from search.loop.testing import Clock, Heard, Simulated
from search.operator.universal import Language, Universal
from search.prompt.archive import Prompts
from search.prompt.knowledge import Library
from search.prompt.synthesis import Writer
from search.store.forgetful import Forgetful

WRITER = Writer("scaled_matmul", CHIP, SIZES, (SIZES,), 1.0, "Tongue", Library(()))


class First:
    """Always chooses the first candidate as a parent."""

    def ask(self, state, count, rng):
        return [Proposal("universal", (state.roots[0],))] * count


class Timed:
    """Each edited source has the time of its number."""

    contexts = {"tongue": "timed"}
    environment = {"contexts": contexts}

    def __init__(self, us):
        self.us = us

    def evaluate(self, candidates, seconds=None):
        for position, c in enumerate(candidates):
            number = int(c.source.split()[1]) if c.source else None
            us = 9.0 if number is None else self.us(number)
            yield position, Evaluation(us, "simulated", "simulator", figures={})


class Numbered:
    """Answers each request with a different source, or all with the same."""

    def __init__(self, alike=False):
        self.alike = alike
        self.prompts, self._numbers = [], itertools.count()

    def __call__(self, request):
        self.prompts.append(request.prompt)
        number = 0 if self.alike else next(self._numbers)
        clock.now += 60.0
        return Answer(
            f">>>>>>> FILE kernel.tng\nfast {number}\n<<<<<<< END\n", 9, 9, 0.0, "stop", 0.1
        )


clock = Clock()


def searched(model, evaluations, us=lambda number: 5.0):
    """The result of a search whose children are all by the model."""
    operator = Universal(
        ask=model,
        model=lambda rng: "tiny",
        languages={"tongue": Language(WRITER, "kernel.tng")},
        source=lambda c: c.source or "slow\n",
        prompts=Prompts(),
        surfaces={"source": 1.0},
        repairs=0.0,
    )
    clock.now = 0.0
    return Search(
        replace(SETTINGS, evaluations=evaluations, measures=(), roofline_share=1e9),
        Timed(us),
        Forgetful(),
        machines={"tongue": CHIP},
        policy=First(),
        operators={"universal": operator},
        models=Heard(clock),
        clock=clock,
        jobs=Simulated(clock, 2),
    ).run()


def test_of_a_hundred_requests_all_prompts_differ_and_all_valid_answers_are_taken():
    model = Numbered()
    outcome = searched(model, 102)
    assert outcome.evaluations == 102 == len(outcome.outcomes)
    assert len(model.prompts) == len(set(model.prompts)) == 100, "each valid answer was taken"


def test_prompts_differ_although_nothing_new_comes_of_them():
    model = Numbered(alike=True)
    outcome = searched(model, 30)
    assert outcome.evaluations == 3 and "nothing new" in outcome.stopped_because
    first = [p for p in model.prompts if "[assistant]" not in p]
    assert len(first) == len(set(first)) > 24
    assert f" more): {TWICE}" in first[-1]


def test_the_fastest_source_is_in_the_next_prompts():
    model = Numbered()
    outcome = searched(model, 40, us=lambda number: 3.0 if number == 5 else 7.0)
    assert outcome.best.source == "fast 5\n"
    later = model.prompts[26:]  # the earlier ones were written before its outcome was known
    assert later and all("to read only):\n````tongue\nfast 5\n````" in p for p in later)
    assert all("3 us (chip, simulated), 0.333 times the 9 us of" in p for p in later)
    assert all("-slow\n+fast 5" in p for p in later)
