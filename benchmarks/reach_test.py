"""Tests how far the winners of contests are from the seeds of a search."""

from pathlib import Path

import pytest

from backends.registry import backend, served_by, target
from benchmarks.candidates import CONTESTS
from benchmarks.reach import apart, main, path, reach, winners
from benchmarks.results import read
from ir.autoschedule.autoschedule import alternatives
from ir.schedule import Decision, Schedule

RESULTS = Path(__file__).parent / "results" / "h200" / "contests.json"
FAR = 2  # Edits.
MATMULS = ("matmul_bf16", "matmul_tf32", "matmul_f32", "matmul_f8", "matmul_bias_gelu")
CONVOLUTIONS = ("conv1d",)
ATTENTION = ("attention_64", "attention_128", "attention_causal_64", "attention_causal_128")


@pytest.mark.parametrize("name", (*MATMULS, *ATTENTION, *CONVOLUTIONS))
def test_few_edits_lead_from_a_seed_to_the_winner(name):
    label = winners(read(RESULTS)["rows"])[name]
    found = reach(CONTESTS[name], name, label, "h200", "cutedsl")
    assert not found.left, found.line
    assert len(found.edits) <= FAR


@pytest.mark.parametrize("label", ("1_windows", "2_windows_persistent"))
def test_few_edits_lead_from_a_seed_to_windows_in_boxes(label):
    found = reach(CONTESTS["conv2d"], "conv2d", label, "h200", "cutedsl")
    assert not found.left and len(found.edits) <= 3, found.line


def test_the_order_of_the_grid_is_part_of_a_schedule():
    here = [Decision("place", f"{i}.outer", (("level", "grid"),)) for i in "mh"]
    contest = CONTESTS["attention_causal_64"]
    machine = served_by(target("h200"), backend("cutedsl"))
    first, goal = (Schedule("attention_causal", tuple(d)) for d in (here, here[::-1]))
    assert path(contest.work().spec, first, goal, machine, contest.sizes) == ((), first)
    assert apart(first, goal) == frozenset(here) and not apart(goal, goal)


@pytest.mark.parametrize("name", ["attention_causal_64", "attention_causal_128"])
def test_a_triangle_begins_with_the_longest_rows_and_has_small_tiles(name):
    contest = CONTESTS[name]
    machine = served_by(target("h200"), backend("cutedsl"))
    seeds = alternatives(contest.work().spec, machine, contest.sizes)
    assert {tuple(d.subject for d in s.of("place")[:2]) for s in seeds} == {("m.outer", "h.outer")}
    said = [set(map(str, s.decisions)) for s in seeds]
    small = {"tile(m, size=64)", "tile(n, size=64)", "roles(y, producers=32)", "overlap(o)"}
    large = {"tile(m, size=128)", "tile(n, size=128)", "threads(y, count=256)", "overlap(o)"}
    assert any(small <= one for one in said) and any(large <= one for one in said)


def test_a_path_ends_where_no_edit_leads_nearer():
    work = CONTESTS["matmul_bias_gelu"].work()
    machine = served_by(target("h200"), backend("cutedsl"))
    first = Schedule(work.spec.name, ())
    goal = Schedule(work.spec.name, (Decision("tile", "nothing", (("size", 4),)),))
    assert path(work.spec, first, goal, machine, work.tune) == ((), first)


def test_the_command_refuses_a_contest_that_there_is_not(capsys):
    wrong = main(["--target=h200", f"--results={RESULTS}", "--contests=nothing"])
    assert wrong == 2
    assert "nothing" in capsys.readouterr().err


def test_the_command_says_the_edits(capsys):
    assert main(["--target=h200", f"--results={RESULTS}", "--contests=matmul_f8"]) == 0
    assert "matmul_f8 3_long: 0 edits" in capsys.readouterr().out
