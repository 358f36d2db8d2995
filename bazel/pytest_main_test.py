"""What Bazel asks for must reach pytest."""

from types import SimpleNamespace

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


def test_every_file_runs_whole_in_exactly_one_shard():
    tests = [f"ir/{letter}_test.py::test_{number}" for number in range(5) for letter in "gabcdef"]
    config = SimpleNamespace(hook=SimpleNamespace(pytest_deselected=lambda items: None))
    files, ran = [], []
    for index in range(3):
        items = [SimpleNamespace(nodeid=test) for test in tests]
        pytest_main.Shard(index, 3).pytest_collection_modifyitems(config, items)
        ran += [item.nodeid for item in items]
        files.append({item.nodeid.partition("::")[0] for item in items})
    assert sorted(ran) == sorted(tests)
    assert sorted(map(len, files)) == [2, 2, 3]
