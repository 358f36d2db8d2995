"""A race of all backends that is interrupted. `evolve_test.py` interrupts runs of one backend."""

import json
import signal

import pytest

from testing.cli.place import Place

# A target with several backends and no device here: times are modelled and reproducible.
TARGET = "h200"
ROWS = ("--kernel=rows.kir", "--policy=evolutionary", "--seed=3")


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path, TARGET)


def results(found):
    """Everything that must not depend on an interrupt."""
    keys = ("evaluations", "failures", "best_us", "backend", "backends", "schedule", "operators")
    return {key: found[key] for key in keys}


def test_a_race_that_was_interrupted_goes_on_as_if_it_had_not_been(place):
    words = (f"--target={TARGET}", *ROWS, "--evaluations=12", "--json", "--workers=1")
    code, out, err = place.run(*words, "--store=whole.db")
    assert code == 0, err
    whole = json.loads(out)["runs"][0]
    stopped = place.signalled(signal.SIGINT, 6)
    code, _, err = place.run(*words, "--store=part.db", **stopped)
    assert code == 130, err
    code, out, err = place.run("--resume=rows-h200-1", "--store=part.db", "--json", "--workers=1")
    assert code == 0, err
    assert results(json.loads(out)["runs"][0]) == results(whole)
