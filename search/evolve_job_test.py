"""A job: many searches with one budget, which share results and can be resumed after a kill."""

import json
import signal
import sqlite3

import pytest

from testing.cli.place import Place

JOB = """
name = "night"

[budget]
evaluations = 26
round = 4

[[search]]
kernels = ["rows.kir", "scale.kir"]
targets = ["null"]
policy = "evolutionary"

[[search]]
kernels = ["rows.kir"]
targets = ["null"]
policy = "evolutionary"
seed = 3
weight = 2.0
evaluations = 9
"""
KEPT = ("--store=runs.db", "--workers=1", "--json")


@pytest.fixture
def place(tmp_path):
    return made(tmp_path)


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A place with a job that ran without interruption, and its results."""
    place = made(tmp_path_factory.mktemp("done"))
    return place, found(place, "--job=job.toml")


def made(folder):
    place = Place(folder, "null")
    (place.work / "job.toml").write_text(JOB)
    return place


def run(place, *words, code=0, **more):
    said, out, err = (place.run if more else place.run_here)(*words, **more)
    assert said == code, err
    return out, err


def found(place, *words, code=0):
    """The results of a job, without times that vary."""
    table = json.loads(run(place, *words, *KEPT, code=code)[0])
    for each in (table["job"], *table["job"]["searches"]):
        each.pop("seconds", None)
        each.pop("taken_s", None)
    return table


def test_a_budget_is_shared_by_all_searches_in_rounds(done):
    _, table = done
    job, rows = table["job"], table["job"]["searches"]
    assert (job["job"], job["evaluations"]) == ("night-1", 26)
    assert [row["run"] for row in rows] == ["rows-null-1", "scale-null-1", "rows-null-2"]
    assert sum(row["made"] for row in rows) == 26 and all(row["made"] >= 4 for row in rows)
    assert rows[2]["made"] <= 9 and job["rounds"] == sum(row["rounds"] for row in rows)
    assert [run["evaluations"] for run in table["runs"]] == [row["made"] for row in rows]
    assert [run["best_us"] for run in table["runs"]] == [row["best_us"] for row in rows]


def test_a_search_finds_in_rounds_what_it_finds_at_once(done):
    place, table = done
    first = table["runs"][0]
    words = ("--kernel=rows.kir", "--policy=evolutionary", "--store=other.db")
    (alone,) = place.evolve(*words, f"--evaluations={first['evaluations']}")["runs"]
    assert table["job"]["searches"][0]["rounds"] > 1
    for name in ("evaluations", "best_us", "schedule", "operators", "failures"):
        assert first[name] == alone[name]


def test_an_equal_candidate_is_evaluated_once(done):
    place, _ = done
    query = "select key, context, outcome from evaluations where context not like '%/same'"
    with sqlite3.connect(place.work / "runs.db") as connection:
        rows = connection.execute(query).fetchall()
    again = [row for row in rows if sum(row[:2] == each[:2] for each in rows) > 1]
    assert again, "both searches for rows start from the same schedules"
    for key, context, outcome in again:  # its duration varies
        assert all(each[2] == outcome for each in rows if each[:2] == (key, context))


@pytest.mark.parametrize("count", [pytest.param(2, marks=pytest.mark.slow), 9])
def test_a_job_that_was_killed_ends_as_if_it_had_not_been(place, done, count):
    dies = place.signalled(signal.SIGKILL, count)
    run(place, "--job=job.toml", *KEPT, code=-signal.SIGKILL, **dies)
    (listed,) = json.loads(run(place, "--list-runs", *KEPT)[0])["jobs"]
    assert listed["job"] == "night-1" and listed["evaluations"] < 26
    (place.work / "job.toml").unlink()  # everything is stored
    (place.work / "rows.kir").unlink()
    assert found(place, "--resume=night-1") == done[1]
    assert found(place, "--resume=night-1") == done[1]  # nothing is left to do


def test_an_interrupt_says_how_to_go_on_and_a_budget_can_be_widened(place):
    stops = place.signalled(signal.SIGINT, 6)
    out, err = run(place, "--job=job.toml", *KEPT, code=130, **stops)
    assert "--resume=night-1 --store=runs.db" in err and "[2/3] scale on null" in err
    assert json.loads(out)["job"]["evaluations"] < 8
    assert "job night-1, round 1, up to 4 evaluations: 0 of 26 evaluations made" in err
    wider = found(place, "--resume=night-1", "--evaluations=14")
    assert wider["job"]["evaluations"] == 14


def test_a_job_is_told_as_a_table(done):
    place, table = done
    out, _ = run(place, "--show=night-1", "--store=runs.db")
    assert out.splitlines()[0].split()[:4] == ["kernel", "target", "run", "priority"]
    last = out.splitlines()[-1]
    assert last.startswith("job night-1: 26 of 26 evaluations in ")
    assert run(place, "--list-runs", "--store=runs.db")[0].endswith(last + "\n")
    shown = json.loads(run(place, "--show=night-1", *KEPT)[0])["job"]
    for name in ("run", "made", "best_us", "state"):
        assert [row[name] for row in shown["searches"]] == [
            row[name] for row in table["job"]["searches"]
        ]


def test_a_wrong_file_ends_the_command_before_anything_is_written(place):
    (place.work / "job.toml").write_text(JOB.replace("seed = 3", "sed = 3"))
    given = place.files()
    out, err = run(place, "--job=job.toml", *KEPT, code=2)
    assert not out and "job.toml, line 17, search 2" in err and "did you mean `seed`?" in err
    assert place.files() == given


def test_a_resume_keeps_what_the_job_says(done):
    place, _ = done
    _, err = run(place, "--resume=night-1", "--policy=greedy", *KEPT, code=2)
    assert "--policy: a resumed job keeps its options" in err
    _, err = run(place, "--resume=night-2", *KEPT, code=2)
    assert "no run `night-2`" in err and "night-1" in err
