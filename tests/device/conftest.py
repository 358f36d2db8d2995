"""Fixtures of the device suite, and the result file that it writes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from benchmarks import device
from frontends.kernelbench.apart import apart
from ir.errors import KernelError
from tests.device import searches
from tests.device.commands import Launched, launched, run
from tests.device.results import write

_RESULTS = pytest.StashKey[dict[str, dict[str, Any]]]()
_HEAD = pytest.StashKey[dict[str, Any]]()


@pytest.fixture(scope="session")
def target(home: Path) -> str:
    """The one target whose GPU this machine has, as `--list-targets` says."""
    rows = run(home, "-m", "search.evolve", "--list-targets", "--json").json["targets"]
    # A target has a row for each of its backends.
    ours = {
        row["target"]
        for row in rows
        if row["time_kind"] == "measured" and device.is_gpu(row["target"])
    }
    why = [f"{row['target']}: {row['why']}" for row in rows if row["why"]]
    assert len(ours) == 1, f"this machine measures for {ours or 'no target'}: {'; '.join(why)}"
    return ours.pop()


@pytest.fixture(scope="session")
def suite(request: pytest.FixtureRequest) -> Path:
    """The checkout of KernelBench; without it the tests that need it fail."""
    given = request.config.getoption("--kernelbench")
    assert given, "the problems are KernelBench's: give its checkout with --kernelbench=DIR"
    path = Path(given).absolute()
    assert (path / "src" / "kernelbench").is_dir(), f"{path} is no checkout of KernelBench"
    return path


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where commands write."""
    return tmp_path_factory.mktemp("device")


@pytest.fixture(scope="session")
def searched(target: str, suite: Path, home: Path) -> Iterator[Launched]:
    """Every search, by its name; they run side by side from the first use on."""
    with launched() as all_of_them:
        searches.start(all_of_them, home, target, suite / "KernelBench")
        yield all_of_them


@pytest.fixture(scope="session")
def idle(request: pytest.FixtureRequest) -> None:
    """Entered when no search is in progress: nothing else runs on the device then. Where the tests of
    searches run too, the searches begin and end before."""
    if any("searched" in item.fixturenames for item in request.session.items):
        request.getfixturevalue("searched").wait()


@pytest.fixture
def note(request: pytest.FixtureRequest) -> Any:
    """`note(name=value)` adds figures to the test's row of the result file."""

    def add(**figures: Any) -> None:
        request.node.user_properties.extend(figures.items())

    return add


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo) -> Iterator[None]:
    """Writes the result file, where one is asked for, after each test: a run may be stopped."""
    outcome = yield
    report = outcome.get_result()
    rows = item.config.stash.setdefault(_RESULTS, {})
    row = rows.setdefault(item.nodeid, {"test": item.nodeid, "outcome": "passed", "seconds": 0.0})
    row["seconds"] = round(row["seconds"] + call.duration, 1)
    if report.failed:
        row["outcome"] = "failed"
        row["why"] = str(call.excinfo.value if call.excinfo else "")[:600]
    elif report.skipped:
        row["outcome"] = "skipped"
    row |= dict(item.user_properties)
    out = item.config.getoption("--device-results")
    if out and report.when == "teardown":
        if _HEAD not in item.config.stash:
            item.config.stash[_HEAD] = _head()
        write(Path(out), list(rows.values()), item.config.stash[_HEAD])


def _head() -> dict[str, Any]:
    """What the result file says of the run; asked in a process of its own, as the GPU is opened."""
    try:
        machine = apart(device.facts, gigabytes=None)
    except KernelError as error:
        machine = {"machine": None, "why": str(error)}
    command = "python3 -m pytest -m device"
    return {"command": command, "date": date.today().isoformat(), **machine}
