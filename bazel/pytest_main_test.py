"""What Bazel asks for must reach pytest."""

import os
import subprocess
import sys
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


def shards(tests, total):
    config = SimpleNamespace(hook=SimpleNamespace(pytest_deselected=lambda items: None))
    for index in range(total):
        items = [SimpleNamespace(nodeid=test) for test in tests]
        pytest_main.Shard(index, total).pytest_collection_modifyitems(config, items)
        yield [item.nodeid for item in items]


def test_every_file_runs_whole_in_exactly_one_shard():
    tests = [f"ir/{letter}_test.py::test_{number}" for number in range(5) for letter in "gabcdef"]
    ran = list(shards(tests, 3))
    files = [{test.partition("::")[0] for test in shard} for shard in ran]
    assert sorted(sum(ran, [])) == sorted(tests)
    assert sorted(map(len, files)) == [2, 2, 3]


def test_the_tests_of_a_single_file_are_divided():
    tests = [f"ir/a_test.py::test_{number}" for number in range(8)]
    ran = list(shards(tests, 3))
    assert sorted(sum(ran, [])) == sorted(tests)
    assert sorted(map(len, ran)) == [2, 3, 3]


def test_what_was_imported_is_no_garbage():
    code = (
        "import gc\nfrom bazel.pytest_main import Garbage\n"
        "Garbage().pytest_collection_finish(None)\n"
        "assert gc.get_freeze_count() > 1000 and gc.get_threshold() == Garbage.THRESHOLDS"
    )
    path = os.pathsep.join(p or os.getcwd() for p in sys.path)
    subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path}, check=True)
