"""Steps within an exchange: drafts are evaluated, documents are read, and there is a limit."""

import json
import random

import pytest

from search.core.candidate import Candidate
from search.core.evaluation import Evaluation, Failure
from search.llm.exchange import Answer, Call
from search.loop.context import GaveUp
from search.operator.steps import OVER, TOOLS, Workbench, guide, steps_of, with_lines
from search.operator.testing import ROOT, TILE, Model, context, edit, universal

WORSE = edit("schedule.sched", "tile(m, size=16)", "tile(m, size=32)")
FASTER = Evaluation(4.0, "modelled", "emulator", figures={"moved_bytes": 9.0, "least_bytes": 9.0})


class Speaking(Model):
    """Gives complete answers, some of them calls."""

    def __call__(self, request):
        given = self.answers[min(len(self.asked), len(self.answers) - 1)]
        self.asked.append(request)
        if isinstance(given, Answer):
            return given
        return Answer(given, 10, 10, 0.0, "stop", 0.1)


def calls(*named):
    found = tuple(Call(f"c{n}", name, text) for n, (name, text) in enumerate(named))
    return Answer("", 10, 10, 0.0, "stop", 0.1, calls=found)


class Judge:
    """Gives the outcomes of drafts, and records the drafts."""

    def __init__(self, *outcomes):
        self.outcomes, self.drafts = list(outcomes), []

    def __call__(self, draft):
        self.drafts.append(draft)
        return self.outcomes.pop(0) if self.outcomes[1:] else self.outcomes[0]


def proposed(model, judge, **more):
    made = universal(model, workbench=Workbench(judge), **more)
    return made.propose(context(ROOT), random.Random(1))


def told(model):
    """The last message to the model."""
    return model.asked[-1].messages[-1].content


def test_a_draft_is_compiled_checked_profiled_and_repaired_before_the_answer():
    wrong = Failure("check", "wrong", "y[3] is 2, not 1")
    slow = Failure("build", "refused", "kernel.tng:1: error: no `fma`")
    judge = Judge(slow, wrong, FASTER)
    model = Speaking(
        f"STEP compile\n{WORSE}", f"STEP check\n{WORSE}", f"STEP profile\n{TILE}", TILE
    )
    child = proposed(model, judge)
    assert isinstance(child, Candidate) and "tile(m, size=8)" in child.schedule
    assert [d.schedule.count("size=32") for d in judge.drafts] == [1, 1, 0]
    answers = [request.messages[-1].content for request in model.asked[1:]]
    assert "failed at build (refused)" in answers[0] and "    1 | slow" in answers[0]
    assert "failed at check (wrong):\ny[3] is 2, not 1" in answers[1]
    assert "It takes 4 us (modelled)" in answers[2] and "moved_bytes 9" in answers[2]
    roles = [m.role for m in model.asked[-1].messages]
    assert roles == ["system", "user", *["assistant", "user"] * 3]


def test_functions_are_called_several_at_once_and_answered_by_their_ids():
    edits = json.dumps({"edits": TILE})
    model = Speaking(calls(("compile", edits), ("edits", ""), ("read", '{"name": ""}')), TILE)
    assert isinstance(proposed(model, Judge(FASTER)), Candidate)
    assert {t.name for t in model.asked[0].tools} == {t.name for t in TOOLS}
    *_, said, first, second, third = model.asked[1].messages
    assert said.calls and [m.call for m in (first, second, third)] == ["c0", "c1", "c2"]
    assert first.content == "It compiles." and "tile(m" in second.content
    assert "`interface`" in third.content


def test_a_wrong_draft_is_told_why_and_no_judge_sees_it():
    judge = Judge(FASTER)
    model = Speaking("STEP check\nI would tile.", TILE)
    proposed(model, judge)
    assert "no candidate" in told(model) and "has no edit" in told(model) and not judge.drafts


@pytest.mark.parametrize(
    "step, words",
    [
        ("STEP read nothing", "there is no document `nothing`"),
        ("STEP read interface", "has no interface of its own"),
        ("STEP fly", "no step `fly`; there are: compile, check, profile, read, edits"),
        ("STEP edits", "tile(m"),
    ],
)
def test_what_else_there_is(step, words):
    model = Speaking(step, TILE)
    assert isinstance(proposed(model, Judge(FASTER)), Candidate) and words in told(model)


def test_steps_have_an_end_and_a_model_that_goes_on_is_refused():
    model = Speaking("STEP edits")
    found = proposed(model, Judge(FASTER), steps=2, tries=1)
    assert isinstance(found, GaveUp) and len(model.asked) == 4
    assert told(model) == OVER and model.asked[-1].tools == ()


def test_tokens_have_an_end_too():
    class Wordy(Speaking):
        def __call__(self, request):
            answer = super().__call__(request)
            return Answer(answer.text, 300_000, 10, 0.0, "stop", 0.1)

    model, judge = Wordy("STEP edits", TILE), Judge(FASTER)
    assert isinstance(proposed(model, judge), Candidate) and told(model) == OVER


def test_each_step_is_kept_by_who_stores_it():
    kept = []

    def stepped(request, said, work):
        kept.append(said)
        return "as it was stored"

    model = Speaking("STEP read tiles", TILE)
    proposed(model, Judge(FASTER), stepped=stepped)
    assert kept == ["read\ntiles"] and told(model) == "as it was stored"


def test_without_steps_nothing_is_said_of_them():
    model = Speaking(TILE)
    proposed(model, Judge(FASTER), steps=0)
    assert model.asked[0].tools == () and "STEP" not in model.asked[0].prompt
    model = Speaking(TILE)
    proposed(model, Judge(FASTER), steps=3)
    assert guide(3) in model.asked[0].prompt and "up to 3 steps" in guide(3)


@pytest.mark.parametrize("arguments", ["not JSON", '["a"]', "{}", ""])
def test_arguments_that_are_no_object_are_taken_as_they_can(arguments):
    (step,) = steps_of(calls(("read", arguments)))
    assert step.argument in (arguments, "")


def test_lines_that_a_reason_names_are_shown_once_each():
    source = "a\nb\nc\n"
    reason = "kernel.cc:2:5: error: x\nkernel.cc:2:9: note: y\nline 3: z, device.h:900: w"
    assert with_lines(reason, source).endswith("names:\n    2 | b\n    3 | c\n")
    assert with_lines("nothing", source) == "nothing"
