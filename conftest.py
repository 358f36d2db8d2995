"""What every test of the tree may use, under plain pytest and under Bazel."""

import os
import pathlib
import sys
from collections.abc import Callable

import pytest
from hypothesis import settings

from bazel import golden as golden_texts

ROOT = pathlib.Path(__file__).parent
DEVICE_TESTS = "_device_test.py"

# The same examples each time, and fewer than usual: there are many properties.
settings.register_profile("tree", settings.get_profile("ci"), max_examples=30)


def pytest_addoption(parser) -> None:
    parser.addoption(
        golden_texts.OPTION, action="store_true", help="write golden texts, do not compare"
    )
    parser.addoption(
        "--record", action="append", help="record.toml of a generated kernel under test"
    )
    device = parser.getgroup("device", "the device suite (docs/device_suite.md)")
    device.addoption("--device-results", metavar="FILE", help="write the suite's result file")
    device.addoption("--kernelbench", metavar="DIR", help="a checkout of KernelBench")
    device.addoption(
        "--cutedsl-built",
        metavar="FOLDER",
        help="kernels of CuTe DSL that benchmarks.prebuilt made",
    )


def pytest_ignore_collect(collection_path: pathlib.Path, config: pytest.Config) -> bool | None:
    """`-m device` collects the device suite alone: a GPU machine lacks packages of other tests."""
    others = collection_path.is_file() and not collection_path.name.endswith(DEVICE_TESTS)
    return True if others and config.getoption("markexpr") == "device" else None


@pytest.fixture
def golden(request) -> golden_texts.Golden:
    """`golden(path, text)`: the file at `path` (from the root) must hold `text`."""
    return golden_texts.golden_for(
        test_file=str(request.path.relative_to(ROOT)),
        root=ROOT,
        update=request.config.getoption(golden_texts.OPTION),
        environ=os.environ,
    )


@pytest.fixture
def calls() -> Callable[[Callable[[], object]], int]:
    """`calls(work)`: how many Python functions `work()` enters, a cost that no clock decides."""
    return _calls


def _calls(work: Callable[[], object]) -> int:
    entered = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal entered
        entered += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return entered
