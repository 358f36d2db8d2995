"""A report shows what the run found, numbered in the order of outcomes."""

from dataclasses import replace

import pytest

from machines.registry import read
from search.core.archive import Archive, Elite
from search.core.candidate import Candidate, Origin
from search.core.evaluation import Evaluation, Failure, ShapeError, Timed
from search.core.graph import Graph
from search.core.held_out import HeldOut
from search.core.outcome import Outcome
from search.core.settings import Settings
from search.core.shape_dispatch import shape_dispatch
from search.core.workload import WeightedShape
from search.report.collect import result
from search.report.page import Text

SPEC = '''def scale(x: f32[M]) -> f32[M]:
    """Double x."""
    y[m] = x[m] * 2.0
    return y
'''
MACHINE = read(
    {
        "name": "chip",
        "title": "a chip",
        "class": "tiles",
        "backends": ["tool"],
        "levels": {"grid": 4},
        "spaces": {
            "global": {"bytes": 1000, "bytes_per_second": 1e9},
            "local": {"bytes": 100},
        },
        "units": {"vector": {"flops": {"f32": 1e9}}},
    }
)


def candidate(size, operator, *parents):
    text = f"schedule(scale)\ntile(m, size={size})\n"
    return Candidate(SPEC, text, "chip", "tool", origin=Origin(operator, parents))


def evaluation(us, **engines):
    errors = (ShapeError({"M": 3}, 1e-7, 2e-7), ShapeError({"M": 8}, 3e-7, 2e-7))
    return Evaluation(us, "simulated", "simulator", errors=errors, engines=engines)


FIRST = candidate(8, "first")
PLAIN = candidate(1, "plain")
OTHER = candidate(32, "mutate", FIRST.key)
BEST = candidate(16, "crossover", FIRST.key, OTHER.key)
OUTCOMES = {
    FIRST.key: evaluation(8.0, dma=0.9),
    PLAIN.key: evaluation(60.0),
    OTHER.key: Failure("check", "wrong", "output `y` is off"),
    BEST.key: evaluation(4.0, dma=0.5, vector=0.25),
}


def outcome(best=BEST, outcomes=OUTCOMES):
    settings = Settings(
        "scale", SPEC, "chip", ("tool",), {"M": 64}, measures=("on_chip", "launches")
    )
    graph, archive = Graph(), Archive((4, 4))
    for each in (FIRST, PLAIN, OTHER, BEST):
        graph.add(each)
    if best:
        archive.add(Elite((1, 0), best, outcomes[best.key], 2.0))
    return Outcome(
        run="scale-chip-1",
        settings=settings,
        evaluations=4,
        failures={"check": 1},
        first=FIRST,
        first_us=8.0 if best else None,
        plain_us=60.0 if best else None,
        best=best,
        evaluation=outcomes[best.key] if best else None,
        roofline_us=2.0,
        stopped_because="enough",
        seconds=65.0,
        archive=archive,
        graph=graph,
        outcomes=outcomes,
    )


@pytest.fixture
def shown():
    return result(outcome(), MACHINE, Text("Source", "x"), {"record": "none"})


def test_figures_and_words_are_those_of_the_run(shown):
    assert (shown.kernel, shown.target, shown.shape, shown.title) == (
        "scale",
        "chip",
        "M=64",
        "Double x.",
    )
    assert (shown.speedup, shown.over_plain, shown.roofline_share) == (2.0, 15.0, 0.5)
    assert (shown.correct_by, shown.time_kind) == ("simulator", "simulated")
    assert shown.facts["checked at"] == "M=3; M=8"
    assert shown.facts["largest error"].startswith("3e-07") and shown.facts["record"] == "none"


def test_trials_are_numbered_as_they_were_told(shown):
    assert [(t.number, t.operator, t.us) for t in shown.trials] == [
        (0, "first", 8.0),
        (1, "plain", 60.0),
        (2, "mutate", None),
        (3, "crossover", 4.0),
    ]
    assert (shown.failed[0].stage, shown.failed[0].reason) == ("check", "output `y` is off")


def test_the_lineage_goes_from_the_first_to_the_winner(shown):
    first, last = shown.lineage
    assert (first.number, first.edits) == (0, ())
    assert (last.number, last.edits, last.others) == (3, ("tile(m): size 8 → 16",), (2,))


def test_engines_are_those_of_the_first_and_of_the_best(shown):
    found = [(e.name, e.first, e.best) for e in shown.engines]
    assert found == [("dma", 0.9, 0.5), ("vector", 0.0, 0.25)]


def test_the_archive_has_the_names_of_its_measures_and_the_winner(shown):
    assert [axis.name for axis in shown.archive.axes] == ["on-chip memory used", "launches"]
    (cell,) = shown.archive.cells
    assert (cell.at, cell.number, cell.winner) == ((1, 0), 3, True)


def test_the_winners_new_lines_are_marked(shown):
    assert shown.texts[0].lines == (("schedule(scale)", False), ("tile(m, size=16)", True))


def test_equations_that_are_not_the_specs_are_shown_with_what_is_new():
    words = SPEC.replace("x[m] * 2.0", "x[m] + x[m]")
    other = replace(BEST, variant=words, origin=BEST.origin)
    graph = outcome().graph
    graph.add(other)
    told = {**OUTCOMES, other.key: OUTCOMES[BEST.key]}
    made = replace(outcome(), best=other, graph=graph, outcomes=told)
    shown = result(made, MACHINE, Text("Source", "x"), {})
    name, lines = shown.texts[1].name, shown.texts[1].lines
    edits = shown.lineage[-1].edits
    assert edits[-1] == "other equations, equal to the spec's, by crossover"
    assert "Equations" in name
    assert [text for text, new in lines if new] == ["    y[m] = x[m] + x[m]"]


def test_a_run_without_a_correct_candidate_is_shown_without_a_winner():
    failed = {key: Failure("check", "wrong", "off") for key in OUTCOMES}
    shown = result(outcome(None, failed), MACHINE, None, {})
    assert shown.best_us is None and shown.speedup is None
    assert shown.lineage == shown.engines == shown.texts == ()
    assert len(shown.failed) == 4


def test_a_workload_is_shown_shape_by_shape_with_the_guards_that_share_it():
    shapes = (WeightedShape({"M": 8}), WeightedShape({"M": 64}, 3.0))
    single = Evaluation(
        4.0, "simulated", "simulator", times=(Timed({"M": 8}, 1.0, 4.0), Timed({"M": 64}, 3.0, 4.0))
    )
    special = replace(single, us=6.0, times=(Timed({"M": 8}, 1.0, 1.0), Timed({"M": 64}, 3.0, 9.0)))
    found = outcome(BEST, {**OUTCOMES, BEST.key: single, OTHER.key: special})
    settings = replace(found.settings, workload=shapes, dispatch=2)
    kernels = shape_dispatch(settings, BEST, found.graph, found.outcomes)
    found = replace(found, settings=settings, dispatch=kernels, bounds_us=(0.5, 2.0))
    held_out = (HeldOut({"M": 9}, 1, 2.0, 3.0, 2.0, 4.0, True),)
    shown = result(found, MACHINE, None, {}, (Text("Kernel 1: schedule", "text"),), held_out)
    assert shown.shape == "M=8 | M=64 (3 times the weight)"
    rows = [(r.shape, r.weight, r.single_us, r.us, r.kernel, r.roofline_us) for r in shown.shapes]
    assert rows == [("M=8", 1.0, 4.0, 1.0, 1, 0.5), ("M=64", 3.0, 4.0, 4.0, 0, 2.0)]
    assert shown.guards[0] == "nearest to M=8: kernel 1"
    assert shown.texts[-1].name == "Kernel 1: schedule"
    assert (shown.held_out[0].shape, shown.held_out[0].said) == ("M=9", "correct")
    assert shown.held_out_words.startswith("1 of 1 correct")


def test_one_shape_has_no_table_of_shapes():
    shown = result(outcome(), MACHINE, None, {})
    assert (shown.shapes, shown.guards, shown.held_out) == ((), (), ())


def test_a_kernel_of_fixed_sizes_without_words_leaves_no_field_blank():
    """as for a module's kernels"""
    spec = SPEC.replace("[M]", "[8]").replace("Double x.", "")
    found = outcome()
    errors = (ShapeError({}, 1e-7, 2e-7),)
    settings = replace(found.settings, spec=spec, sizes={}, checks=({},))
    found = replace(found, settings=settings, evaluation=replace(found.evaluation, errors=errors))
    made = result(found, MACHINE, None, {})
    assert made.title == "scale(x: f32[8]) -> f32[8]" and made.shape == "fixed sizes"
    assert made.facts["checked at"] == "fixed sizes"
    assert made.facts["time"] == "simulated, at fixed sizes"
    assert all(made.facts.values())
