"""A workload of several shapes becomes one record whose kernels share them, by the command."""

import json

import pytest

from ir.guards import chosen
from kernels_generated.reproduction import reproduction
from search.core.evaluation import Evaluation
from search.record.record import read_record
from testing.cli import command

SHAPES = (  # in the order of the kernel's signature
    {"B": 64, "C": 4, "L": 16, "O": 4},
    {"B": 1, "C": 48, "L": 64, "O": 48},
    {"B": 2, "C": 8, "L": 32, "O": 64},
    {"B": 16, "C": 16, "L": 64, "O": 16},
)
GIVEN = [
    "--shape=" + ",".join(f"{name}={size}" for name, size in shape.items()) for shape in SHAPES
]


def evolve(folder, *words, target="npu"):
    return command.evolve(
        folder, f"--target={target}", *words, BUILD_WORKSPACE_DIRECTORY=str(folder)
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The run that the command made, its record and its page."""
    folder = tmp_path_factory.mktemp("workload")
    (folder / "WORKSPACE").touch()
    done = evolve(
        folder,
        "--kernel=conv1d",
        *GIVEN,
        "--dispatch=3",
        "--evaluations=8",
        "--workers=2",
        "--no-store",
        "--promote",
        "--json",
        "--held-out=10",
        "--report=page.html",
    )
    assert done.returncode == 0, done.stderr
    (run,) = json.loads(done.stdout)["runs"]
    return run, folder / "kernels_generated" / "conv1d" / "npu", folder / "page.html"


def test_several_kernels_are_one_record_with_guards(made):
    run, folder, _ = made
    record = read_record(folder).record
    assert record.specializations and record.guards and record.within
    assert run["record"] == "kernels_generated/conv1d/npu"
    assert {"kernel.cc", "kernel_1.cc", "schedule_1.sched"} < {p.name for p in folder.iterdir()}
    assert [dict(t.shape) for t in record.workload] == list(SHAPES)
    assert [chosen(record.guards, shape) for shape in SHAPES] == [t.kernel for t in record.workload]
    assert all(word in record.command for word in (*GIVEN, "--dispatch=3"))


def test_it_is_at_least_as_fast_at_each_shape_as_the_single_best(made):
    run, folder, _ = made
    record = read_record(folder).record
    single = [row["single_us"] for row in run["shapes"]]
    assert [t.us for t in record.workload] == [row["us"] for row in run["shapes"]]
    assert all(t.us <= us for t, us in zip(record.workload, single, strict=True))
    assert record.us < record.single_us == pytest.approx(run["best_us"])


def test_it_is_correct_at_ten_held_out_shapes(made):
    run, _, _ = made
    held_out = run["held_out"]["shapes"]
    assert len(held_out) == run["held_out"]["correct"] == 10
    assert all(row["compared"] and not row["fault"] for row in held_out)
    assert not [row for row in held_out if row["sizes"] in SHAPES]
    assert all(row["us"] > 0 and row["first_us"] > 0 for row in held_out)


def test_the_record_holds_what_it_says_when_it_is_made_again(made):
    _, folder, _ = made
    stored = read_record(folder)
    assert stored.edited_by_hand() == []
    again = reproduction(stored)
    sources = again.emit_all()
    assert list(sources) == [kernel.source for kernel in stored.kernels]
    found = again.evaluate_all(sources)
    assert isinstance(found, Evaluation), found
    assert found.us == pytest.approx(stored.record.us)


def test_the_page_shows_the_shapes_and_the_guards(made):
    run, _, page = made
    text = page.read_text(encoding="utf-8")
    assert "At each shape" in text and "At shapes that it was not tuned for" in text
    assert "kernel_1.cc" in text
    assert "and where another does not fit: kernel 0" in text


@pytest.mark.parametrize(
    "words, said",
    [
        (["--shape=B=2", "--shape=B=2,C=96"], "is given twice"),
        (["--shape=B=2", "--shape=B=4@0"], "`0` is no weight"),
        (["--shape=B=2", "--shape=M=4"], "has no size `M`"),
        (["--shape=B=2", "--dispatch=2"], "there is one"),
        (["--dispatch=2"], "there is one"),
        (["--shape=B=2", "--held-out=3"], "there is one"),
    ],
)
def test_shapes_that_make_no_sense_are_told(tmp_path, words, said):
    done = command.evolve_here(tmp_path, "--kernel=conv1d", "--target=null", *words)
    assert done.returncode == 2 and said in done.stderr, done.stderr
    assert "Traceback" not in done.stderr


def test_without_a_dispatch_one_kernel_has_all_shapes(tmp_path):
    done = evolve(
        tmp_path,
        "--kernel=conv1d",
        *GIVEN[:2],
        "--evaluations=4",
        "--no-store",
        "--json",
        target="null",
    )
    (run,) = json.loads(done.stdout)["runs"]
    assert run["dispatch"] is None and run["held_out"] is None
    assert [row["sizes"] for row in run["shapes"]] == list(SHAPES[:2])
    assert [row["us"] for row in run["shapes"]] == [row["single_us"] for row in run["shapes"]]


def test_a_stored_workload_goes_on_with_its_shapes(tmp_path):
    words = ["--no-promote", "--store=runs.db", "--json"]
    first = evolve(
        tmp_path,
        "--kernel=conv1d",
        *GIVEN[:2],
        "--dispatch=2",
        "--evaluations=4",
        "--held-out=0",
        *words,
        target="null",
    )
    assert first.returncode == 0, first.stderr
    (run,) = json.loads(first.stdout)["runs"]
    more = evolve(
        tmp_path, f"--resume={run['run']}", "--evaluations=6", "--held-out=0", *words, target="null"
    )
    assert more.returncode == 0, more.stderr
    (again,) = json.loads(more.stdout)["runs"]
    assert again["evaluations"] == 6 and len(again["shapes"]) == 2
    assert again["dispatch"]["us"] <= again["dispatch"]["single_us"] == again["best_us"]
