"""How far the winners of contests are from the seeds of a search."""

from pathlib import Path

import pytest

from backends.registry import backend, served_by, target
from benchmarks.candidates import CONTESTS
from benchmarks.reach import main, path, reach, winners
from benchmarks.results import read
from ir.schedule import Decision, Schedule

RESULTS = Path(__file__).parent / "results" / "h200" / "contests.json"
FAR = 5  # edits
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
    assert not found.left and len(found.edits) <= FAR, found.line


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
