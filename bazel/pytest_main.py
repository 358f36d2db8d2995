"""Runs pytest inside a Bazel test.

Takes the test files as arguments, and translates what Bazel says through the
environment: where the XML report goes, which shard this is, which tests were
asked for with --test_filter.
"""

import gc
import os
import pathlib
import sys
from collections.abc import Collection, Mapping

import pytest


class Shard:
    """Keeps the tests of one shard: whole files, whose tests share what they set up, or each n-th test
    of a single file.
    """

    def __init__(self, index: int, total: int) -> None:
        self.index = index
        self.total = total

    def owned(self, names: Collection[str]) -> set[str]:
        """The files, or tests, that run in this shard; each runs in exactly one."""
        return {name for n, name in enumerate(sorted(names)) if n % self.total == self.index}

    def pytest_collection_modifyitems(self, config, items) -> None:
        """Called by pytest with all tests that it found."""
        several = len({_file(item) for item in items}) > 1
        name = _file if several else _test
        mine = self.owned({name(item) for item in items})
        config.hook.pytest_deselected(items=[item for item in items if name(item) not in mine])
        items[:] = [item for item in items if name(item) in mine]


class Garbage:
    """Has garbage collected rarely, and what was imported left out of it: a collection walks through
    all objects of the process, of which packages as large as PyTorch have a million.
    """

    THRESHOLDS = (50_000, 20, 50)

    def __init__(self) -> None:
        gc.set_threshold(*self.THRESHOLDS)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Called by pytest when all test files are imported."""
        gc.collect()
        gc.freeze()

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Called by pytest after the last test: what is left ends with the process."""
        gc.freeze()


def _file(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def _test(item: pytest.Item) -> str:
    return item.nodeid


def arguments(environ: Mapping[str, str]) -> list[str]:
    """pytest's arguments for what Bazel asks through the environment."""
    args = ["-c", "pytest.ini", "--rootdir", "."]
    if environ.get("XML_OUTPUT_FILE"):
        args += ["--junitxml", environ["XML_OUTPUT_FILE"]]
    if environ.get("TEST_TMPDIR"):
        args += ["--basetemp", os.path.join(environ["TEST_TMPDIR"], "pytest")]
    if environ.get("TESTBRIDGE_TEST_ONLY"):
        args += ["-k", environ["TESTBRIDGE_TEST_ONLY"]]
    if environ.get("TESTBRIDGE_TEST_RUNNER_FAIL_FAST") == "1":
        args += ["-x"]
    return args


def homes(environ: Mapping[str, str]) -> dict[str, str]:
    """Variables that give a test a home of its own; the account's is read-only."""
    tmp = environ.get("TEST_TMPDIR")
    if not tmp:
        return {}
    return {"HOME": tmp, "TMPDIR": tmp, "XDG_CACHE_HOME": os.path.join(tmp, "cache")}


def main() -> int:
    """Runs the tests; the result is the exit status."""
    os.environ.update(homes(os.environ))
    status_file = os.environ.get("TEST_SHARD_STATUS_FILE")
    if status_file:
        # Tells Bazel that sharding is understood.
        pathlib.Path(status_file).touch()
    shard = Shard(
        index=int(os.environ.get("TEST_SHARD_INDEX") or 0),
        total=int(os.environ.get("TEST_TOTAL_SHARDS") or 1),
    )
    code = pytest.main(arguments(os.environ) + sys.argv[1:], plugins=[shard, Garbage()])
    if code == pytest.ExitCode.NO_TESTS_COLLECTED and shard.total > 1:
        return 0
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
