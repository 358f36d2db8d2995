"""The universal operator asks, reads answers strictly, and tells the model what was wrong."""

import random
from dataclasses import replace

import pytest

from search.core.candidate import Candidate
from search.core.evaluation import Evaluation, Failure
from search.core.transferred import Transferred
from search.llm.exchange import ModelError
from search.loop.context import GaveUp, Halted
from search.operator.testing import (
    NONSENSE,
    OTHER,
    ROOT,
    SOURCE,
    TILE,
    WRITER,
    Model,
    context,
    edit,
    universal,
)
from search.operator.universal import Language
from search.prompt.regions import first_regions


def test_an_edit_of_the_schedule_becomes_a_child_that_knows_its_prompt():
    model = Model(TILE)
    child = universal(model).propose(context(ROOT), random.Random(1))
    assert "tile(m, size=8)" in child.schedule and child.source is None
    assert child.origin.parents == (ROOT.key,) and child.origin.note == "Because."
    assert child.origin.prompt == first_regions().digest
    assert [m.role for m in model.asked[0].messages] == ["system", "user"]


def test_an_edit_of_the_source_is_a_child_of_its_own():
    child = universal(Model(SOURCE), "source").propose(context(ROOT), random.Random(1))
    assert child.source == "faster\n" and child.schedule == ROOT.schedule
    again = universal(Model(SOURCE), "schedule")
    grandchild = again.propose(context(child), random.Random(1))
    assert isinstance(grandchild, GaveUp), "a source of its own is edited, not its schedule"


def test_an_edit_of_the_equations_keeps_what_lowers_of_the_schedule():
    old = "    y[m, n] = acc[m, n] * g[n]"
    model = Model(edit("variant.kir", old, "    y[m, n] = g[n] * acc[m, n]"))
    child = universal(model, "equations").propose(context(ROOT), random.Random(1))
    assert "g[n] * acc[m, n]" in child.variant and "tile(m, size=16)" in child.schedule


def test_the_language_is_that_of_the_backend_that_a_child_is_for():
    languages = {
        "tongue": Language(WRITER, "kernel.tng"),
        "dialect": Language(replace(WRITER, language="Dialect"), "kernel.dia"),
    }
    model = Model(SOURCE.replace("kernel.tng", "kernel.dia"))
    root = replace(ROOT, backend="dialect")
    made = universal(model, "source", languages=languages)
    child = made.propose(context(root), random.Random(1))
    assert (child.backend, child.source) == ("dialect", "faster\n")
    system, user = (m.content for m in model.asked[0].messages)
    assert "Dialect source" in system and "kernel.dia" in user and "kernel.tng" not in user


def test_the_best_of_another_backend_can_be_translated():
    there = Transferred("chip", "dialect", ROOT.variant, OTHER.schedule, 3.0, "modelled", "run")
    model = Model(TILE)
    made = universal(model, translations=1.0)
    made.propose(context(ROOT, transferred=(there,)), random.Random(1))
    user = model.asked[0].messages[1].content
    assert "is fast on this machine in another language (dialect)" in user
    assert "# The kernel for dialect" in user


REFUSED = {
    "nonsense": (NONSENSE, "has no edit"),
    "no such verb": (edit("schedule.sched", "tile(m, size=16)", "tiel(m, size=8)"), "tiel"),
    "not legal": (edit("schedule.sched", "tile(m, size=16)", "tile(q, size=8)"), "q"),
    "no effect": (
        edit("schedule.sched", "tile(m, size=16)", "tile(m, size=8)\nmulticast(a, over=m.outer)"),
        "`multicast(a, over=m.outer)` would change nothing: no launch",
    ),
    "tried before": (edit("schedule.sched", "tile(m, size=16)", "tile(m, size=16) "), "before"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_was_wrong_goes_back_to_the_model(case):
    answer, reason = REFUSED[case]
    model = Model(answer, TILE)
    child = universal(model).propose(context(ROOT), random.Random(1))
    assert isinstance(child, Candidate)
    assert [m.role for m in model.asked[1].messages] == ["system", "user", "assistant", "user"]
    assert reason in model.asked[1].messages[-1].content
    assert model.asked[0].messages == model.asked[1].messages[:2]


def test_a_model_that_only_talks_nonsense_is_given_up():
    model = Model(NONSENSE)
    found = universal(model).propose(context(ROOT), random.Random(1))
    assert isinstance(found, GaveUp) and "2 answers were refused" in found.reason
    assert (found.answer, found.prompt) == (NONSENSE, first_regions().digest)
    assert len(model.asked) == 2


LONG = "".join(f"line {n} of a long source\n" for n in range(9000))  # 233 kB


@pytest.mark.parametrize("surface", ["schedule", "equations", "source"])
def test_a_source_that_is_longer_than_a_prompt_may_be_ends_nothing(surface):
    answer = f">>>>>>> FILE kernel.tng\n{LONG}<<<<<<< END\n"
    child = universal(Model(answer), "source").propose(context(ROOT), random.Random(1))
    assert child.source == LONG, "a long source is a candidate like any other"
    model = Model(TILE)
    found = universal(model, surface).propose(context(child), random.Random(1))
    assert isinstance(found, GaveUp) and "tokens, the budget is 64000" in found.reason
    assert not model.asked


def test_a_source_that_is_long_as_it_is_emitted_is_cut_where_it_is_only_shown():
    model = Model(TILE)
    child = universal(model, source=lambda c: LONG).propose(context(ROOT), random.Random(1))
    assert isinstance(child, Candidate) and "lines left out]" in user(model)


def test_an_answer_that_is_too_long_is_refused_and_not_shown_whole_again():
    model = Model("x" * 500_000, TILE)
    assert isinstance(universal(model).propose(context(ROOT), random.Random(1)), Candidate)
    *_, said, refusal = model.asked[1].messages
    assert "the answer has 500000 characters; 400000 are read at most" in refusal.content
    assert len(said.content) < 50_000


def test_combining_shows_the_source_of_the_second_parent_as_it_is():
    edited = universal(Model(SOURCE), "source").propose(context(ROOT), random.Random(1))
    for second, source in ((edited, "faster"), (OTHER, "slow")):
        model = Model(NONSENSE)
        combine = universal(model, "source", name="combine", parents=2)
        combine.propose(context(ROOT, second), random.Random(1))
        shown = user(model).split("# The other kernel")[1]
        assert f"`kernel.tng` (to read only):\n````\n{source}\n````" in shown


def test_an_error_that_may_pass_is_given_up_and_one_that_lasts_halts():
    found = universal(Model(ModelError("server", "down"))).propose(context(ROOT), random.Random(1))
    assert isinstance(found, GaveUp)
    for kind, spent in (("key", False), ("budget", True)):
        with pytest.raises(Halted) as caught:
            universal(Model(ModelError(kind, "no"))).propose(context(ROOT), random.Random(1))
        assert caught.value.spent == spent


def child_of_root():
    return universal(Model(TILE)).propose(context(ROOT), random.Random(1))


def user(model):
    return model.asked[0].messages[1].content


def test_the_context_says_what_is_asked_for():
    child = child_of_root()
    fast = {child.key: Evaluation(3.0, "simulated", "simulator")}
    transferred = Transferred("elsewhere", "dialect", ROOT.variant, ROOT.schedule, 1.0, "measured")
    here = {
        "Draft": (context(ROOT), {}),
        "faster on": (context(child, outcomes=fast), {}),
        "is fast on another machine": (
            context(child, transferred=(transferred,)),
            {"translations": 1.0},
        ),
        "Two kernels": (context(child, OTHER), {"name": "combine", "parents": 2}),
    }
    for words, (given, changed) in here.items():
        model = Model(NONSENSE)
        universal(model, **changed).propose(given, random.Random(3))
        assert words in user(model), words


def test_a_failed_child_is_repaired_in_its_parents_place():
    child = universal(Model(SOURCE), "source").propose(context(ROOT), random.Random(1))
    lost = {child.key: Failure("check", "wrong", "off by 0.5")}
    model = Model(">>>>>>> FILE kernel.tng\nright\n<<<<<<< END\n")
    given = context(ROOT, others=(child,), outcomes=lost)
    repaired = universal(model, repairs=1.0).propose(given, random.Random(1))
    assert "off by 0.5" in user(model) and repaired.source == "right\n"
    assert repaired.origin.parents == (child.key,)


def test_the_same_context_generator_and_answers_give_the_same_request():
    models = [Model(TILE) for _ in range(2)]
    made = [universal(m).propose(context(ROOT), random.Random(5)) for m in models]
    assert made[0] == made[1] and models[0].asked == models[1].asked


def test_an_answer_that_was_cut_off_is_told_so_with_its_limit():
    class Cut(Model):
        def __call__(self, request):
            return replace(super().__call__(request), finish="length")

    model, refused = Cut("I think, and", TILE), []
    made = universal(model, answer_tokens=50, refuse=lambda request, why: refused.append(why))
    child = made.propose(context(ROOT), random.Random(1))
    assert isinstance(child, Candidate), "an answer that is whole all the same is taken"
    assert [r.max_tokens for r in model.asked] == [50, 50]
    (reason,) = refused
    assert "cut off at its limit of 50 tokens" in reason
    assert reason.splitlines()[0] in model.asked[1].messages[-1].content


def test_the_prompt_is_written_at_once_and_the_model_asked_later():
    model = Model(TILE)
    pending = universal(model).prepare(context(ROOT), random.Random(1))
    assert model.asked == [] and pending.asked.startswith("draft the schedule of ")
    assert isinstance(pending.answer(), Candidate) and len(model.asked) == 1


def test_effort_is_passed_on():
    model = Model(TILE)
    universal(model, effort="high").propose(context(ROOT), random.Random(1))
    assert model.asked[0].effort == "high"


def test_all_faults_of_an_answer_are_told_at_once():
    twice = edit("schedule.sched", "no such line", "x") + edit("nothing.txt", "a", "b")
    model = Model(twice, TILE)
    assert isinstance(universal(model).propose(context(ROOT), random.Random(1)), Candidate)
    told = model.asked[1].messages[-1].content
    assert "stand 0 times" in told and "there is no file `nothing.txt`" in told


def test_each_line_of_a_schedule_that_cannot_be_read_is_told():
    wrong = "schedule(scaled_matmul)\ntile(m, size=)\ntile(n, size=8)\nplace(m.outer level=grid)\n"
    model = Model(f">>>>>>> FILE schedule.sched\n{wrong}<<<<<<< END\n", TILE)
    universal(model).propose(context(ROOT), random.Random(1))
    told = model.asked[1].messages[-1].content
    assert "line 2" in told and "line 4" in told and "line 3" not in told
