"""Winners go to the user's destination: a folder, the checkout's records, or nowhere."""

import json
import tomllib
from pathlib import Path

import pytest

import backends
from testing.cli.place import Place

WORDS = ("--kernel=rows.kir", "--evaluations=6", "--no-store")
TARGETS = Path(backends.__file__).parent / "targets"
TARGET = ("--target=h200", "--backend=triton")
NAMES = {"record.toml", "schedule.sched", "kernel.txt"}


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path, "null")


def refused(place, code, out, err, *said):
    assert (code, out) == (2, "") and "Traceback" not in err
    assert all(words in err for words in said), err
    assert place.new_files() == []


def test_a_winner_is_written_to_a_folder_with_its_schedule_and_record(place):
    run = place.evolve(*WORDS, "--out=here/results")["runs"][0]
    folder = place.work / "here" / "results" / "rows" / "null"
    assert run["out"] == str(folder) and run["record"] is None
    assert {file.name for file in folder.iterdir()} == NAMES
    assert {file.name for file in folder.parent.iterdir()} == {"null", "spec.kir"}
    assert (folder / "kernel.txt").read_text() == run["source"]
    assert (folder / "schedule.sched").read_text() == run["schedule"]
    record = tomllib.loads((folder / "record.toml").read_text())
    assert record["us"] == run["best_us"] and "--out=here/results" in record["command"]


def test_a_folder_that_has_a_winner_is_not_overwritten_unless_it_is_asked_for(place):
    words = (*WORDS, "--out=results")
    place.evolve(*words)
    folder = place.work / "results" / "rows" / "null"
    (folder / "kernel.txt").write_text("edited by hand")
    place.given = place.files()
    refused(
        place, *place.run_here("--target=null", *words), "--out", "already exists", "--overwrite"
    )
    assert (folder / "kernel.txt").read_text() == "edited by hand"
    run = place.evolve(*words, "--overwrite")["runs"][0]
    assert (folder / "kernel.txt").read_text() == run["source"]


def test_a_folder_of_another_kernel_of_the_name_is_refused_before_a_search(place):
    place.evolve(*WORDS, "--out=results")
    (place.work / "results" / "rows" / "null").rename(place.work / "results" / "rows" / "other")
    text = (place.work / "rows.kir").read_text()
    (place.work / "rows.kir").write_text(text.replace("* w[k, n]", "+ w[k, n]"))
    place.given = place.files()
    said = ("another spec named `rows`", "hint: ")
    refused(place, *place.run_here("--target=null", *WORDS, "--out=results"), *said)


def test_a_checkout_takes_kernels_of_the_library_and_others_on_request_only(place):
    """For a target that is not for tests, so that nothing else prevents a kernel from being
    accepted."""
    (place.work / "WORKSPACE").touch()
    tree = {"BUILD_WORKSPACE_DIRECTORY": str(place.work)}
    words = (*TARGET, "--workers=1", "--evaluations=1", "--store=runs.db")
    code, _, err = place.run_here(*words, "--kernel=scale.kir", **tree)
    assert code == 0 and "scale on h200: written nowhere; --out=DIR" in err
    assert "--promote to kernels_generated/" in err
    assert not (place.work / "kernels_generated").exists()
    code, out, err = place.run_here(
        *words, "--kernel=pairwise_dot", "--shape=B=2", "--json", **tree
    )
    (run,) = json.loads(out)["runs"]
    assert run["record"] == "kernels_generated/pairwise_dot/h200.triton" and run["out"] is None, err
    assert (place.work / run["record"] / "record.toml").is_file()
    assert not (place.work / "speciate_out").exists()


def test_a_checkout_is_not_offered_what_it_refuses(place):
    """A user's own target cannot be promoted, so the last line names only --out."""
    (place.work / "WORKSPACE").touch()
    text = (TARGETS / "h200.toml").read_text().replace('name = "h200"', 'name = "own"', 1)
    (place.work / "own.toml").write_text(text)
    words = ("--backend=triton", "--kernel=scale.kir", "--workers=1", "--evaluations=1")
    tree = {"BUILD_WORKSPACE_DIRECTORY": str(place.work)}
    code, _, err = place.run_here("--target=own.toml", *words, "--store=runs.db", **tree)
    assert code == 0 and "scale on own: written nowhere; --out=DIR" in err
    assert "--show=RUN" in err and "--promote" not in err


def test_outside_a_checkout_winners_go_to_a_folder(place):
    words = (*TARGET, "--kernel=scale.kir", "--workers=1", "--evaluations=1", "--no-store")
    code, out, err = place.run_here(*words)
    folder = place.work / "speciate_out" / "scale" / "h200.triton"
    assert code == 0 and f"scale: {folder}" in out, err
    assert (folder / "kernel.py").is_file() and not (folder.parent / "BUILD.bazel").exists()
