"""What Bazel asks for must reach pytest."""

import pytest

from bazel import pytest_main


def test_nothing_asked_nothing_added():
    assert pytest_main.arguments({}) == ["-c", "pytest.ini", "--rootdir", "."]


@pytest.mark.parametrize(
    "name, value, expected",
    [
        ("XML_OUTPUT_FILE", "/o/test.xml", ["--junitxml", "/o/test.xml"]),
        ("TEST_TMPDIR", "/t", ["--basetemp", "/t/pytest"]),
        ("TESTBRIDGE_TEST_ONLY", "shape", ["-k", "shape"]),
        ("TESTBRIDGE_TEST_RUNNER_FAIL_FAST", "1", ["-x"]),
        ("TESTBRIDGE_TEST_RUNNER_FAIL_FAST", "0", []),
    ],
)
def test_variable_becomes_argument(name, value, expected):
    assert pytest_main.arguments({name: value})[4:] == expected


def test_test_has_a_home_of_its_own():
    assert pytest_main.homes({"TEST_TMPDIR": "/t"}) == {
        "HOME": "/t",
        "TMPDIR": "/t",
        "XDG_CACHE_HOME": "/t/cache",
    }


def test_home_stays_without_bazel():
    assert pytest_main.homes({}) == {}


def test_every_test_runs_in_exactly_one_shard():
    shards = [pytest_main.Shard(index, 3) for index in range(3)]
    names = [f"ir/a_test.py::test_{number}" for number in range(50)]
    owners = [[shard.index for shard in shards if shard.owns(name)] for name in names]
    assert all(len(indices) == 1 for indices in owners)
    assert {indices[0] for indices in owners} == {0, 1, 2}
