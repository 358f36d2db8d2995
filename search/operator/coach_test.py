"""The coach asks for better prompts, and accepts only well-formed answers."""

from dataclasses import replace

import pytest

from search.core.candidate import Origin
from search.core.evaluation import Evaluation, Failure
from search.core.graph import Graph
from search.core.testing import CHIP
from search.llm.exchange import Answer, ModelError
from search.loop.context import Halted, Refused
from search.operator.coach import MOVES, Coach
from search.operator.testing import ROOT
from search.prompt.archive import Prompts
from search.prompt.regions import first_regions

LINE = first_regions().pitfalls.splitlines()[0]
GOOD = f"Shorter.\n<<<<<<< SEARCH pitfalls.md\n{LINE}\n=======\n- Mind shared memory.\n>>>>>>> REPLACE\n"


def coach(answer, asked):
    def ask(request):
        asked.append(request)
        if isinstance(answer, ModelError):
            raise answer
        return Answer(answer, 1, 1, 0.0, "stop", 0.1)

    emitted = lambda c: c.source or "slow\n"  # noqa: E731
    return Coach(ask, lambda rng: "tiny", Prompts(), "softmax", CHIP, emitted)


def advance(made, graph=None, outcomes=None, seed=1, refused=()):
    """The resulting version; None if there is none."""
    before = set(made.prompts.versions)
    take = made.begin(graph or Graph(), outcomes or {}, f"{seed}", refused)()
    assert set(made.prompts.versions) == before, "it takes effect when it is taken"
    if take is not None:
        take()
    return next((v for d, v in made.prompts.versions.items() if d not in before), None)


def test_a_good_answer_is_a_new_version():
    asked = []
    made = coach(GOOD, asked)
    version = advance(made)
    assert "- Mind shared memory." in version.regions.pitfalls and version.move in MOVES
    assert version.parent == first_regions().digest and len(made.prompts.versions) == 2
    (message,) = asked[0].messages
    for text in first_regions().files().values():
        assert text.strip() in message.content
    assert f"Your move this time: {version.move}." in message.content


def test_a_version_that_is_there_by_then_is_refused():
    refused = []
    made = replace(coach(GOOD, []), refuse=lambda request, reason: refused.append(reason))
    one, two = (made.begin(Graph(), {}, "1")() for _ in range(2))
    one(), two()
    assert refused == ["the archive has this version"] and len(made.prompts.versions) == 2


@pytest.mark.parametrize(
    "answer",
    [
        "Better luck next time.",
        ">>>>>>> FILE pitfalls.md\n\n<<<<<<< END\n",
        ModelError("server", "down"),
    ],
)
def test_what_is_no_version_is_left(answer):
    made = coach(answer, [])
    assert advance(made) is None and len(made.prompts.versions) == 1


FIRST = first_regions().digest


def children(*told, prompt=FIRST):
    """A graph with a child of ROOT for each outcome, and all outcomes; times in us."""
    graph, outcomes = Graph(), {ROOT.key: Evaluation(8.0, "modelled", "emulator")}
    graph.add(ROOT)
    for number, outcome in enumerate(told):
        origin = Origin("universal", (ROOT.key,), f"Idea {number}.", prompt=prompt)
        child = replace(ROOT, source=f"fast {number}\n", origin=origin)
        graph.add(child)
        failed = isinstance(outcome, Failure)
        outcomes[child.key] = outcome if failed else Evaluation(outcome, "modelled", "emulator")
    return graph, outcomes


def said(*told, refused=(), **more):
    asked = []
    assert advance(coach(GOOD, asked), *children(*told, **more), refused=refused)
    return asked[0].messages[0].content


@pytest.mark.parametrize("reason", ["", "\n"])
def test_a_child_that_failed_without_a_reason_is_told(reason):
    text = said(Failure("build", "crash", reason))
    assert "failed at build (crash): no reason was given\n    universal: Idea 0" in text


def test_what_gained_most_and_what_did_not_are_told_with_their_diffs():
    wrong = Failure("check", "wrong", "element 3 is wrong\nand more")
    text = said(4.0, 16.0, 7.0, 2.0, 6.0, 9.0, wrong, 12.0)
    best, others = text.split("The latest that gained nothing or failed:")
    best = best.split("What gained most")[1]
    places = [best.index(f"universal: Idea {n}\n") for n in (3, 0, 4)]
    assert places == sorted(places) and "Idea 2" not in best
    assert "2 us (chip, modelled), 0.250 times the 8 us of" in best and "-slow\n+fast 3" in best
    assert "Idea 1\n" not in text, "the latest alone are told"
    assert "9 us" in others and "12 us" in others and "+fast 5" in others
    assert "failed at check (wrong): element 3 is wrong" in others and "+fast 6" in others


def test_requests_of_which_nothing_came_are_told_with_reasons_and_answers():
    refused = [
        Refused(f"improve the schedule of k{n}", f"why {n}", f"answer {n}\n", FIRST)
        for n in range(6)
    ]
    other = Refused("improve what another version asked for", "why", "text", "another")
    text = said(4.0, refused=[*refused, other])
    assert "another version" not in text and "k1" not in text
    for n in range(2, 6):
        assert (
            f"- asked to improve the schedule of k{n}\n    refused: why {n}\n````\nanswer {n}\n"
            in text
        )


def test_children_of_other_versions_are_not_told():
    assert "Idea" not in said(4.0, 9.0, prompt="another")


def test_an_error_that_lasts_halts():
    with pytest.raises(Halted):
        advance(coach(ModelError("key", "wrong"), []))


def test_seeds_move_differently_and_each_always_the_same():
    moves = [advance(coach(GOOD, []), seed=seed).move for seed in range(12)]
    assert len(set(moves)) > 2
    assert moves == [advance(coach(GOOD, []), seed=seed).move for seed in range(12)]
