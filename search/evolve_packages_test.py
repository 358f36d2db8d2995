"""The command on a machine with few packages, as one with a GPU often is."""

import pytest

from testing.cli.place import Place

ABSENT = ("sqlalchemy", "rich", "optuna", "cmaes", "ribs", "openai", "ray", "psutil", "pybind11")


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path, "null")


def test_a_search_needs_few_packages_and_says_what_it_does_without(place):
    words = ("--target=null", "--kernel=rows.kir", "--no-store", "--evaluations=24", "--workers=1")
    code, out, err = place.run(*words, **place.without(*ABSENT))
    assert code == 0, err
    assert "nothing is tuned: the Python package `optuna` is not installed here" in err + out
    assert "24 evaluations were asked for and made" in err + out


def test_a_policy_that_needs_a_package_says_so(place):
    words = ("--target=null", "--kernel=rows.kir", "--no-store", "--workers=1", "--policy=tpe")
    code, _, err = place.run(*words, **place.without(*ABSENT))
    assert code == 2 and "`optuna` is not installed" in err


def test_a_cluster_needs_ray_and_says_so_before_anything_is_kept(place):
    words = ("--target=null", "--kernel=rows.kir", "--cluster=local")
    code, _, err = place.run(*words, **place.without(*ABSENT))
    assert code == 2 and "`ray` is not installed" in err and "speciate[cluster]" in err
    assert not list(place.folder.rglob("*.db"))
