"""The command on a machine with few packages, as one with a GPU often is."""

import os
import sys

import pytest

from tests.place.place import Place

FEW = """
from importlib.machinery import PathFinder
found = PathFinder.find_spec
ABSENT = ("sqlalchemy", "rich", "optuna", "cmaes", "ribs", "openai", "ray", "psutil", "pybind11")
def find(name, *more):
    return None if name.partition(".")[0] in ABSENT else found(name, *more)
PathFinder.find_spec = find
"""


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path, "null")


def few(place):
    """The variable by which Python finds few packages: what it runs first hides the others."""
    hiding = place.folder / "hiding"
    hiding.mkdir()
    (hiding / "sitecustomize.py").write_text(FEW)
    return {"PYTHONPATH": os.pathsep.join([str(hiding), *(p or os.getcwd() for p in sys.path)])}


def test_a_search_needs_few_packages_and_says_what_it_does_without(place):
    words = ("--target=null", "--kernel=rows.kir", "--no-store", "--evaluations=24", "--workers=1")
    code, out, err = place.run(*words, **few(place))
    assert code == 0, err
    assert "nothing is tuned: the Python package `optuna` is not installed here" in err + out
    assert "24 evaluations were asked for and made" in err + out


def test_a_policy_that_needs_a_package_says_so(place):
    words = ("--target=null", "--kernel=rows.kir", "--no-store", "--workers=1", "--policy=tpe")
    code, _, err = place.run(*words, **few(place))
    assert code == 2 and "`optuna` is not installed" in err
