"""The lesson of a small artificial run, and its use in a later run."""

import math
from dataclasses import replace

import pytest

from ir.errors import KernelError
from ir.print import spec_text
from search.core.archive import Archive
from search.core.candidate import Candidate, Origin
from search.core.evaluation import Evaluation, Failure
from search.core.graph import Graph
from search.core.outcome import Outcome
from search.core.settings import Settings
from search.prompt.document import Document, document
from search.prompt.lesson import EQUATIONS, SOURCE, distil
from search.prompt.lessons import MOST, Folder, InStore, Lessons, beside
from testing.samples.samples import SMALL, workload

TEXT = spec_text(workload("softmax").spec)
HERE = replace(SMALL, name="small", backends=("tongue",))
OTHER = replace(SMALL, name="large", backends=("tongue",))
EXTERNAL = replace(SMALL, name="small", backends=("voice",))
FIRST = "tile(m, size=4)\n"


def made(graph, outcomes, decisions, us, parent=None, **changes):
    """Adds a candidate to a run; `us` is a time or a failure."""
    origin = Origin("mutate", (parent.key,)) if parent else Origin("first")
    c = Candidate(TEXT, f"schedule(softmax)\n{decisions}", "small", "tongue", origin=origin)
    c = replace(c, **changes)
    graph.add(c)
    outcomes[c.key] = us if isinstance(us, Failure) else Evaluation(us, "modelled", "emulator")
    return c


def run(*children, name="run-1", target="small"):
    """An outcome whose first candidate takes 100 us; children: (decisions, us or failure,
    changes)."""
    graph, outcomes = Graph(), {}
    first = made(graph, outcomes, FIRST, 100.0)
    for decisions, us, *changes in children:
        made(graph, outcomes, decisions, us, first, **(changes[0] if changes else {}))
    correct = [c for c in graph if isinstance(outcomes[c.key], Evaluation)]
    best = min(correct, key=lambda c: outcomes[c.key].us)
    chosen = Settings("softmax", TEXT, target, ("tongue",), {"M": 64, "K": 32})
    return Outcome(
        run=name,
        settings=chosen,
        evaluations=len(graph),
        failures={},
        first=first,
        first_us=100.0,
        plain_us=None,
        best=best,
        evaluation=outcomes[best.key],
        roofline_us=10.0,
        stopped_because="",
        seconds=1.0,
        archive=Archive((1,)),
        graph=graph,
        outcomes=outcomes,
    )


WRONG = Failure("check", "wrong", "y is off by 3\n  at [0, 1]")
STAGE = FIRST + "pipeline(x, stages=2)\n"
RUN = run(
    (STAGE, 50.0),
    (FIRST + "pipeline(x, stages=3)\n", 200.0),
    ("tile(m, size=8)\npipeline(x, stages=2)\n", 25.0),
    ("tile(m, size=16)\n", WRONG),
)


def test_the_mean_gain_of_a_verb_is_over_its_edits_and_an_edit_shares_its_childs():
    tallies = distil(RUN, "tongue", "2026-01-31").tallies
    assert list(tallies) == ["pipeline", "tile"]
    stage, tile = tallies["pipeline"], tallies["tile"]
    # Gains of 2 and 1/2, and half of the gain of 4 by two edits.
    assert (stage.tries, stage.timed, stage.faster, stage.failed) == (3, 2.5, 1.5, 0)
    assert stage.speedup == pytest.approx(math.exp(math.log(2) / 2.5))
    assert (tile.tries, tile.timed, tile.faster, tile.failed) == (2, 0.5, 0.5, 1)
    assert tile.speedup == pytest.approx(4.0)


def test_failures_are_counted_with_the_first_line_of_their_reason():
    assert distil(RUN, "tongue", "2026-01-31").reasons == {("tile", "check: y is off by 3"): 1}


def test_single_edits_are_told_with_their_gain_the_best_first():
    found = distil(RUN, "tongue", "2026-01-31")
    assert found.single == {"+ pipeline(x, stages=2)": 2.0, "+ pipeline(x, stages=3)": 0.5}
    assert list(found.single) == ["+ pipeline(x, stages=2)", "+ pipeline(x, stages=3)"]
    assert "- `+ pipeline(x, stages=3)`: 0.50 times as fast" in found.document.body


def test_a_parent_that_failed_teaches_nothing():
    graph, outcomes = Graph(), {}
    failed = made(graph, outcomes, FIRST, WRONG)
    made(graph, outcomes, STAGE, 5.0, failed)
    assert not distil(replace(RUN, graph=graph, outcomes=outcomes), "tongue", "2026-01-31").tallies


def test_a_child_for_another_target_is_not_compared():
    found = distil(run((STAGE, 1.0, {"target": "large"})), "tongue", "2026-01-31")
    assert not found.tallies


def test_times_of_two_kinds_are_not_compared():
    graph, outcomes = Graph(), {}
    first = made(graph, outcomes, FIRST, 100.0)
    child = made(graph, outcomes, STAGE, 1.0, first)
    outcomes[child.key] = Evaluation(1.0, "measured", "device")
    tally = distil(replace(RUN, graph=graph, outcomes=outcomes), "tongue", "2026-01-31").tallies[
        "pipeline"
    ]
    assert (tally.tries, tally.timed, tally.faster, tally.speedup) == (1, 0, 0, 1.0)


def test_other_equations_and_a_source_of_its_own_are_edits_too():
    other = TEXT.replace("e[m, k] / s[m]", "e[m, k] * (1.0 / s[m])")
    found = distil(
        run((FIRST, 50.0, {"variant": other}), (FIRST, 80.0, {"source": "x"})),
        "tongue",
        "2026-01-31",
    )
    assert list(found.tallies) == [EQUATIONS, SOURCE]
    assert found.tallies[EQUATIONS].speedup == pytest.approx(2.0)


def test_the_winner_is_told_apart_from_the_first():
    assert distil(RUN, "tongue", "2026-01-31").winner == (
        "tile(m): size 4 \N{RIGHTWARDS ARROW} 8",
        "+ pipeline(x, stages=2)",
    )


def test_a_lesson_is_a_document_with_its_provenance():
    found = distil(RUN, "tongue", "2026-01-31").document
    assert (found.kind, found.machines) == ("skill", ("small", "tongue"))
    assert found.operations == ("reduction", "softmax", "special")
    assert found.provenance["run"] == "run-1"
    assert found.provenance["date"] == "2026-01-31"
    assert (found.provenance["time_kind"], found.provenance["evaluations"]) == ("modelled", 5)
    assert document(found.name, found.file_text) == found
    assert "4.00 times as fast as the first" in found.body
    assert "tile, 1 times: check: y is off by 3" in found.body


def test_a_run_of_which_nothing_was_correct_still_teaches():
    graph, outcomes = Graph(), {}
    made(graph, outcomes, FIRST, WRONG)
    empty = replace(RUN, graph=graph, outcomes=outcomes, best=None, evaluation=None, first_us=None)
    found = distil(empty, "tongue", "2026-01-31").document
    assert "Nothing was correct." in found.body
    assert found.provenance["time_kind"] == ""


def test_the_same_run_teaches_the_same():
    assert (
        distil(RUN, "tongue", "2026-01-31").document == distil(RUN, "tongue", "2026-01-31").document
    )


def test_lessons_are_kept_and_those_of_the_machine_come_first(tmp_path):
    kept = Lessons(Folder(tmp_path / "deep" / "lessons"))
    assert kept.documents(HERE) == ()
    there = distil(run((STAGE, 50.0), name="a", target="large"), "tongue", "2026-01-31")
    here = distil(RUN, "tongue", "2026-01-31")
    for lesson in (there, here):
        kept.add(lesson)
    assert kept.documents(HERE) == (here.document, there.document)
    assert kept.documents(OTHER) == (there.document, here.document)
    assert kept.documents(EXTERNAL) == ()


def test_a_run_that_went_on_replaces_its_lesson(tmp_path):
    kept = Lessons(Folder(tmp_path))
    kept.add(distil(RUN, "tongue", "2026-01-31"))
    kept.add(distil(RUN, "tongue", "2026-02-01"))
    assert [d.provenance["date"] for d in kept.documents(HERE)] == ["2026-02-01"]


def test_verbs_that_paid_are_preferred(tmp_path):
    kept = Lessons(Folder(tmp_path))
    good = [(FIRST + f"pipeline(x, stages={n})\n", 50.0) for n in range(2, 40)]
    bad = [(f"tile(m, size={n})\n", 200.0) for n in range(5, 40)]
    kept.add(distil(run(*good, *bad), "tongue", "2026-01-31"))
    found = kept.preferences(HERE, ("reduction", "softmax", "special"))
    assert 1 < found["pipeline"] <= MOST
    assert 1 / MOST <= found["tile"] < 1
    assert set(found) == {"pipeline", "tile"}


def test_other_kernels_and_other_targets_count_less(tmp_path):
    kept = Lessons(Folder(tmp_path))
    good = [(FIRST + f"pipeline(x, stages={n})\n", 50.0) for n in range(2, 12)]
    bad = [(f"tile(m, size={n})\n", 200.0) for n in range(5, 15)]
    kept.add(distil(run(*good, *bad), "tongue", "2026-01-31"))
    alike = ("reduction", "softmax", "special")
    same = kept.preferences(HERE, alike)["pipeline"]
    assert same > kept.preferences(OTHER, alike)["pipeline"] > 1
    assert same > kept.preferences(HERE, ("softmax", "scan"))["pipeline"] > 1
    assert kept.preferences(HERE, ("scan",)) == {}


def test_no_lessons_have_no_preferences(tmp_path):
    assert Lessons(Folder(tmp_path / "none")).preferences(HERE, ("softmax",)) == {}


def test_lessons_lie_beside_a_store_in_a_file():
    assert str(beside("/a/b/store.db")) == "/a/b/lessons"
    assert str(beside("sqlite:////a/b/store.db")) == "/a/b/lessons"


class _Store:
    """Stores lessons in memory."""

    url = "postgresql://host/name"

    def __init__(self):
        self.kept = {}

    def lessons(self):
        return dict(sorted(self.kept.items()))

    def learned(self, name, text):
        self.kept[name] = text


def test_lessons_in_a_store_are_as_those_in_a_folder(tmp_path):
    store = _Store()
    shelves = Lessons(Folder(tmp_path)), Lessons(InStore(store))
    for kept in shelves:
        kept.add(distil(RUN, "tongue", "2026-01-31"))
        kept.add(distil(run((STAGE, 50.0), name="a", target="large"), "tongue", "2026-01-31"))
    of_folder, of_store = (kept.documents(HERE) for kept in shelves)
    assert of_store == of_folder and len(of_store) == 2
    store.kept["note"] = "no document"
    with pytest.raises(KernelError, match="does not begin with a header") as caught:
        shelves[1].documents(HERE)
    assert caught.value.where == "postgresql://host/name, lesson note"


def test_what_is_no_lesson_does_not_belong_there(tmp_path):
    other = Document("note", "idioms", "T", "A sentence.\n", ("ir/lower/verbs.py",))
    (tmp_path / "note.md").write_text(other.file_text, encoding="utf-8")
    with pytest.raises(KernelError, match="`note` is a document of kind `idioms`"):
        Lessons(Folder(tmp_path)).documents(HERE)


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(KernelError, match="a lesson cannot be written") as caught:
        Lessons(Folder(tmp_path / "file")).add(distil(RUN, "tongue", "2026-01-31"))
    assert str(tmp_path) in caught.value.where
