"""Tests that a run of a suite attempts what has no row, keeps each row, and survives failures."""

import argparse
import json
import os

import pytest

from benchmarks.attempts import Attempts, head, noted, options, serving, suit
from ir.errors import KernelError


def asked(tmp_path, *words):
    parser = argparse.ArgumentParser()
    options(parser, "thing", seconds=20, gigabytes=4)
    return parser.parse_args(["--target=null", f"--out={tmp_path / 'r.json'}", *words])


def names(tmp_path):
    return [r["name"] for r in json.loads((tmp_path / "r.json").read_text())["rows"]]


@pytest.fixture
def tried(tmp_path):
    """Runs attempts and records which items were attempted."""

    def run(things, *words):
        seen = []

        def attempt(thing):
            seen.append(thing)
            return {"name": thing}

        def write(rows):
            (tmp_path / "r.json").write_text(json.dumps({"rows": sorted(rows, key=str)}))

        made = Attempts(asked(tmp_path, *words), lambda r: (r["name"],), write, str)
        made.run({(thing,): thing for thing in things}, attempt)
        return sorted(seen)

    return run


def test_what_has_a_row_is_tried_when_it_is_asked_for_again(tried, tmp_path):
    assert tried("ab") == ["a", "b"]
    assert tried("abc") == ["c"]
    assert names(tmp_path) == ["a", "b", "c"]
    assert tried("ac", "--again", "--workers=1") == ["a", "c"]
    assert names(tmp_path) == ["a", "b", "c"]


def test_nothing_begins_when_the_time_is_over(tried):
    assert tried("ab", "--seconds=-1") == []


def _work(given):
    notes, what = given
    notes.write_text(json.dumps({"stage": "run"}))
    if what == "dies":
        os._exit(3)
    return {"stage": "done"}


def _dies(notes):
    os._exit(3)


def test_what_a_process_noted_is_kept_when_it_dies(tmp_path):
    given = asked(tmp_path)
    assert noted(_work, lambda notes: (notes, ""), {}, given) == {"stage": "done"}
    row = noted(_work, lambda notes: (notes, "dies"), {"stage": "read"}, given)
    assert row["stage"] == "run"
    assert "the process ended with 3" in row["reason"]
    assert noted(_dies, lambda notes: notes, {"stage": "read"}, given)["stage"] == "read"


@pytest.mark.parametrize(("correct_by", "gigabytes"), [("device", None), ("interpreter", 8)])
def test_attempts_on_a_device_have_no_limit_on_addresses(correct_by, gigabytes):
    asked = argparse.Namespace(gigabytes=8)
    suit(asked, correct_by)
    assert asked.gigabytes == gigabytes


def test_a_suite_may_name_one_of_several_backends(tmp_path):
    machine, first = serving("h200", None)
    assert first.manifest.name == machine.backends[0]
    for name in machine.backends:
        served, backend = serving("h200", name)
        assert backend.manifest.name == name and served.rendering == backend.manifest.rendering
    with pytest.raises(KernelError, match="is not served by backend `null`"):
        serving("h200", "null")
    named = asked(tmp_path, "--backend=null")
    assert head(named, "x --out=FILE")["command"] == "python3 -m x --out=FILE --backend=null"
