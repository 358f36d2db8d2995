"""Tests repeats: a row's spread, and files that are not repetitions."""

import json

import pytest

from benchmarks.repeats import main

HEAD = {"command": "c", "date": "d", "machine": "m", "driver": "1", "versions": {"torch": "2"}}


def row(speedup, **other):
    made = {
        "kernel": "softmax",
        "dtype": "f16",
        "shape": {"M": 4},
        "source": "s",
        "fastest": "eager",
        "us": 10.0,
        "baselines_us": {"eager": 10.0 * (speedup or 1)},
        "speedup": speedup,
    }
    return made | other


@pytest.fixture
def repeats(tmp_path, capsys):
    """Runs the command on files with these rows. Returns the exit code, the table and the
    output."""

    def run(*files):
        names = []
        for number, rows in enumerate(files):
            names.append(tmp_path / f"{number}.json")
            table = rows if isinstance(rows, dict) else HEAD | {"rows": rows}
            names[-1].write_text(json.dumps(table))
        out = tmp_path / "out.json"
        code = main([f"--out={out}", *map(str, names)])
        return code, json.loads(out.read_text()) if out.exists() else None, capsys.readouterr()

    return run


def test_a_spread_is_of_the_largest_speed_up_over_the_least(repeats):
    wide = dict(kernel="map_id")
    code, made, said = repeats(*([row(s), row(t, **wide)] for s, t in ((2.0, 1), (2.02, 1.1))))
    assert code == 1 and "1 of 2 rows within 2%, largest 10.00%" in said.out
    assert made["rows"][0]["spread"] == pytest.approx(0.01)
    assert made["rows"][0]["speedups"] == [2.0, 2.02]
    assert made["summary"]["within"] == 1 and made["repeats"] == 2
    assert repeats([row(2.0)], [row(2.01)])[0] == 0


@pytest.mark.parametrize(
    "other, reason",
    [
        (row(None, reason="wrong"), "wrong"),
        (row(2.0, source="t"), "`source` is t in one run and s in another"),
        (row(2.0, baselines_us={"eager": 20.0, "compile": 30.0}), "compile has a time in some"),
    ],
)
def test_a_row_that_is_not_the_same_does_not_repeat(repeats, other, reason):
    code, made, _ = repeats([row(2.0)], [other])
    assert code == 1 and made["summary"]["failed"] == 1
    assert reason in made["rows"][0]["reason"] and made["rows"][0]["spread"] is None


def test_either_of_two_baselines_may_be_the_fastest(repeats):
    both = {"eager": 20.0, "compile": 20.1}
    other = row(2.0, fastest="compile", baselines_us=both | {"eager": 20.2})
    code, made, _ = repeats([row(2.0, baselines_us=both)], [other])
    assert code == 0 and made["rows"][0]["fastest"] == "eager/compile"
    assert made["rows"][0]["baseline_us"] == [20.0, 20.1]


@pytest.mark.parametrize(
    "files, said",
    [
        ([[row(2.0)]], "1 file is no repetition"),
        ([[row(2.0)], []], "other rows than the first"),
        ([[row(2.0)], HEAD | {"machine": "n", "rows": [row(2.0)]}], "another machine"),
        ([[], []], "there are no rows"),
    ],
)
def test_what_is_no_repetition_is_told(repeats, files, said):
    code, made, heard = repeats(*files)
    assert code == 2 and made is None and said in heard.err


def test_a_file_that_is_not_there_is_told(tmp_path, capsys):
    assert main([f"--out={tmp_path}/o.json", f"{tmp_path}/a.json", f"{tmp_path}/b.json"]) == 2
    assert "a.json: there is no such file" in capsys.readouterr().err
