"""The coach asks for better prompts, and takes only answers in form."""

from dataclasses import replace

import pytest

from search.core.candidate import Candidate, Origin
from search.core.evaluation import Failure
from search.core.graph import Graph
from search.llm.exchange import Answer, ModelError
from search.loop.context import Halted
from search.operator.coach import MOVES, Coach
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

    return Coach(ask, lambda rng: "tiny", Prompts(), "softmax", "A chip")


def advance(made, graph=None, outcomes=None, seed=1):
    """The version that came of it; None where none did."""
    before = set(made.prompts.versions)
    take = made.begin(graph or Graph(), outcomes or {}, f"{seed}")()
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


@pytest.mark.parametrize("reason", ["", "\n"])
def test_a_child_that_failed_without_a_reason_is_told(reason):
    parent = Candidate("f", "s", "chip", "tongue")
    origin = Origin("universal", (parent.key,), "Wider.", prompt=first_regions().digest)
    child = Candidate("f", "t", "chip", "tongue", origin=origin)
    graph, asked = Graph(), []
    for each in (parent, child):
        graph.add(each)
    outcomes = {child.key: Failure("build", "crash", reason)}
    assert advance(coach(GOOD, asked), graph, outcomes)
    assert "Wider.: failed at build: no reason was given" in asked[0].messages[0].content


def test_an_error_that_lasts_halts():
    with pytest.raises(Halted):
        advance(coach(ModelError("key", "wrong"), []))


def test_seeds_move_differently_and_each_always_the_same():
    moves = [advance(coach(GOOD, []), seed=seed).move for seed in range(12)]
    assert len(set(moves)) > 2
    assert moves == [advance(coach(GOOD, []), seed=seed).move for seed in range(12)]
