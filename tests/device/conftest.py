"""Fixtures of the device suite, and the result file that it writes."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from benchmarks import device
from benchmarks.results import save
from frontends.kernelbench.apart import apart
from tests.device import searches
from tests.device.commands import ROOT, Launched, launched, run

_RESULTS = pytest.StashKey[dict[str, dict[str, Any]]]()


@pytest.fixture(scope="session")
def target(home: Path) -> str:
    """The one target whose GPU this machine has, as `--list-targets` says."""
    rows = run(home, "-m", "search.evolve", "--list-targets", "--json").json["targets"]
    ours = [row["target"] for row in rows if row["time_kind"] == "measured"]
    why = [f"{row['target']}: {row['why']}" for row in rows if row["why"]]
    assert len(ours) == 1, f"this machine measures for {ours or 'no target'}: {'; '.join(why)}"
    return ours[0]


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
def idle(searched: Launched) -> None:
    """Entered when no search is under way: nothing else runs on the device then."""
    searched.wait()


@pytest.fixture
def note(request: pytest.FixtureRequest) -> Any:
    """`note(name=value)` adds figures to the test's row of the result file."""

    def add(**figures: Any) -> None:
        request.node.user_properties.extend(figures.items())

    return add


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo) -> Iterator[None]:
    outcome = yield
    report = outcome.get_result()
    rows = item.config.stash.setdefault(_RESULTS, {})
    row = rows.setdefault(item.nodeid, {"test": item.nodeid, "outcome": "passed"})
    if report.failed:
        row["outcome"] = "failed"
        row["why"] = str(call.excinfo.value if call.excinfo else "")[:600]
    elif report.skipped:
        row["outcome"] = "skipped"
    if report.when == "call":
        row |= dict(item.user_properties)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Writes the result file, where one is asked for."""
    out = session.config.getoption("--device-results")
    rows = list(session.config.stash.get(_RESULTS, {}).values())
    if not out or not rows:
        return
    counts = {o: sum(r["outcome"] == o for r in rows) for o in ("passed", "failed", "skipped")}
    file = Path(out)
    save(
        file if file.is_absolute() else ROOT / file,
        {
            "command": "python3 -m pytest -m device",
            "date": date.today().isoformat(),
            "python": platform.python_version(),
            **apart(device.facts, gigabytes=None),
            **counts,
            "tests": json.loads(json.dumps(rows, default=str)),
        },
    )
