"""The output of `--list-targets`, `--list-kernels`, `--list-runs`, `--show`, `--salvage` and
`--version`."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from backends.registry import backend, backend_for, backend_names, served_by, target, target_names
from backends.served import Served
from ir.errors import KernelError
from ir.machine import Machine
from ir.parse.parse import parse_workload
from ir.print import signature
from search.cli.arguments import Arguments
from search.cli.files import artefacts, keeper, require, require_writable, url
from search.cli.invocation import Invocation
from search.cli.promote import lineage, winner_texts
from search.cli.suite import ENDING, LIBRARY, library, resumed
from search.cli.tables import columns, summary_text
from search.core import quantity
from search.core.settings import Settings
from search.core.stored import Keeper, StoredRun
from search.loop.retold import ending, fastest, retold, told
from search.record.specialization import Texts
from search.store.address import is_url, without_password

TARGET_FACTS = ("device", "toolchain")
TARGET_TITLES = ("target", "backend", "correct by", "time", "with", "what it is")


def targets() -> list[dict[str, Any]]:
    """Each target with each of its backends, as plain data."""
    rows = []
    for name in target_names():
        machine = target(name)
        for serving in machine.backends:
            here = _here(serving, machine)
            rows.append({"target": name, "backend": serving, "title": machine.title, **here})
    return rows


def targets_text(rows: Sequence[Mapping[str, Any]], width: int | None = None) -> str:
    """The list for a person, followed by the backends' notes about this machine."""
    cells = [
        (
            row["target"],
            row["backend"],
            row["correct_by"] or "not here",
            row["time_kind"] or "not here",
            row["device"] or row["toolchain"] or "-",
            row["title"],
        )
        for row in rows
    ]
    lacking = {f"{row['backend']}: {row['why']}\n" for row in rows if row["why"]}
    return columns([TARGET_TITLES, *cells], "<<<<<<", width) + "".join(sorted(lacking))


def _here(serving: str, machine: Any) -> dict[str, Any]:
    try:
        found = backend(serving).available(machine)
    except KernelError as error:
        found = {"why": error.what}
    return {name: found.get(name) for name in ("correct_by", "time_kind", *TARGET_FACTS, "why")}


def kernels() -> list[dict[str, Any]]:
    """Each kernel, as plain data."""
    found = []
    for name in library():
        text = (LIBRARY / (name + ENDING)).read_text(encoding="utf-8")
        held = parse_workload(text, name)
        found.append(
            {
                "kernel": name,
                "signature": signature(held.spec),
                "title": held.spec.doc.strip().partition("\n")[0],
                "tune": dict(held.tune) if held.tune is not None else None,
                "checks": [dict(sizes) for sizes in held.checks],
            }
        )
    return found


def kernels_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """The list for a person: each signature, followed by the tuning sizes and the title."""
    return "".join(
        f"{row['signature']}\n    {row['title']}\n    tuned for {quantity.shape(row['tune'] or {})}\n"
        for row in rows
    )


VERSION = "0.1.0"


def versions() -> dict[str, str]:
    """The versions by name: of this project, of Python, and of the installed packages that backends
    use."""
    packages = {name: _installed(name) for name in ("torch", *backend_names())}
    return {
        "speciate": VERSION,
        "python": platform.python_version(),
        **{name: version for name, version in packages.items() if version},
    }


def versions_text(found: Mapping[str, str]) -> str:
    """The versions, a line each."""
    return "".join(f"{name} {version}\n" for name, version in found.items())


def _installed(package: str) -> str:
    """The version of a package; empty if it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


TITLES = ("run", "kernel", "target", "started", "evaluations", "best", "time", "state")


def runs(asked: Arguments, around: Invocation) -> list[dict[str, Any]]:
    """Each run of the store as plain data, latest first; empty if there is no store."""
    place = url(asked, around)
    if not is_url(place) and not around.path(place).is_file():
        return []
    with closing(keeper(asked, around)) as store:
        return [_listed(store, run, at) for run, at in store.started().items()]


def runs_text(rows: Sequence[Mapping[str, Any]], place: str, width: int | None = None) -> str:
    """The list for a person."""
    if not rows:
        return f"no run is stored in {place}\n"
    cells = [
        (
            row["run"],
            row["kernel"],
            row["target"],
            row["started"],
            str(row["evaluations"]),
            quantity.time(row["best_us"]),
            row["time_kind"] or quantity.NONE,
            row["state"],
        )
        for row in rows
    ]
    return columns([TITLES, *cells], "<<<<>><<", width)


def jobs(asked: Arguments, around: Invocation) -> list[dict[str, Any]]:
    """The state of each job of the store, latest first; empty if there is no store."""
    place = url(asked, around)
    if not is_url(place) and not around.path(place).is_file():
        return []
    with closing(keeper(asked, around)) as store:
        return [table for _, table in _jobs(store)]


def _jobs(store: Keeper, name: str | None = None) -> list[tuple[str, dict[str, Any]]]:
    """The jobs of a store by name, or only the one with a given name if it exists."""
    from search.cli.job_stored import job_table
    from search.store.jobs import StoredJobs
    from search.store.store import Store

    assert isinstance(store, Store), "nothing is told of runs that are not stored"
    kept = StoredJobs(store)
    names = [each for each in kept.names() if name in (None, each)]
    return [(each, job_table(kept.load(each), store)) for each in names]


def jobs_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """A line for each job; empty if there is none."""
    from search.cli.job_stored import job_sentence

    return "".join(f"{job_sentence(row)}\n" for row in rows)


def shown(asked: Arguments, around: Invocation, run: str) -> tuple[dict[str, Any], str]:
    """A run with its winner's texts, or a job with its searches, as plain data and as text."""
    from search.cli.job_stored import job_words
    from search.cli.session import Ended  # a sandbox takes long to import

    with closing(keeper(asked, around)) as store:
        for _, job in _jobs(store, run):
            return job, job_words(job, around.width)
        record, started = store.load(run), store.started()[run]
    problem = resumed(asked, run, record.settings, around.path, _opened)
    outcome = retold(record, problem.machine)
    ended = Ended(problem, outcome, record.environment, interrupted=False)
    row = _row(record, started)
    steps: tuple[str, ...] = ()
    if outcome.best is not None:
        steps = lineage(outcome, outcome.best)
    table = {
        **ended.table(),
        "started": row["started"],
        "state": row["state"],
        "settings": json.loads(record.settings.to_json()),
        "lineage": list(steps),
    }
    texts = winner_texts(problem, outcome)
    parts = [
        f"{run}: started {row['started']}, {row['state']}\n",
        summary_text([ended.line], around.width),
        _settings_text(problem.settings),
        _lines("lineage, from the first schedule", "\n".join(steps)),
        *_texts(texts, problem.served[outcome.backend].backend.manifest.extension),
    ]
    return table, "\n".join(part for part in parts if part)


def salvaged(asked: Arguments, around: Invocation, name: str) -> tuple[dict[str, Any], str]:
    """Salvages a store. Returns the result as plain data and as text."""
    require("sqlalchemy", "it keeps runs in a store", "install it", "--salvage")
    from search.store.salvage import salvage

    place, new = url(asked, around), around.path(name)
    if is_url(place):
        raise KernelError(
            f"`{without_password(place)}` is no file",
            where="--salvage",
            allowed="the SQLite file of a store",
        )
    require_writable("--salvage", new)
    found = salvage(Path(place), new)
    rows = [(t, str(found.saved.get(t, 0)), str(found.lost.get(t, 0))) for t in found.tables]
    parts = [
        columns([("table", "saved", "lost"), *rows], "<>>", around.width),
        *(f"{table}: pages cannot be read; what they held is lost\n" for table in found.unread),
        *(f"lost, the first of {line}\n" for line in found.why),
        f"{new} holds {found.saved.get('runs', 0)} runs\n",
    ]
    return asdict(found) | {"store": str(new)}, "\n".join(parts)


def collected(asked: Arguments, around: Invocation) -> tuple[dict[str, Any], str]:
    """Removes unused artefacts. Returns the result as plain data and as text."""
    require("sqlalchemy", "it keeps runs in a store", "install it", "--collect-artefacts")
    from search.store.collecting import collect
    from search.store.store import Store

    place = url(asked, around)
    if not is_url(place) and not Path(place).is_file():
        raise KernelError(
            f"there is no store in `{place}`", where="--store", hint="name the store with --store"
        )
    with closing(Store(place, artefacts=artefacts(asked, around))) as store:
        removed, left = collect(store)
        where = store.artefacts.files.address if store.artefacts else ""
    table = {"artefacts": where, "removed": removed, "left": left}
    return table, f"{where}: {removed} artefacts removed, {left} left\n"


def _listed(store: Keeper, run: str, started: float) -> dict[str, Any]:
    """The row of a run. A run with damaged rows is marked as damaged."""
    try:
        return _row(store.load(run), started)
    except KernelError as error:
        said = _said_of(run, started) | {"evaluations": 0, "best_us": None, "time_kind": None}
        return said | {"state": "damaged", "stopped_because": str(error)}


def _said_of(run: str, started: float) -> dict[str, Any]:
    at = f"{datetime.fromtimestamp(started, UTC):%Y-%m-%d %H:%M} UTC"
    return {"run": run, "kernel": "", "target": "", "started": at}


def _row(record: StoredRun, started: float) -> dict[str, Any]:
    outcomes = told(record)
    best, (state, reason) = fastest(outcomes), ending(record)
    return {
        **_said_of(record.run, started),
        "kernel": record.settings.kernel,
        "target": record.settings.target,
        "evaluations": len(outcomes),
        "best_us": best[1].us if best else None,
        "time_kind": best[1].time_kind if best else None,
        "state": state,
        "stopped_because": reason or None,
    }


def _settings_text(chosen: Settings) -> str:
    """The user's settings that are not empty."""
    said = asdict(chosen)
    left = (
        "kernel",
        "target",
        "spec",
        "schedule",
        "transferred",
        "lessons",
        "measures",
        "workload",
    )
    rows = [
        f"  {name}: {_worded(value)}\n"
        for name, value in said.items()
        if name not in left and value not in (None, "", (), {})
    ]
    return "settings:\n" + "".join(rows)


def _worded(value: Any) -> str:
    if isinstance(value, Mapping):
        return quantity.shape(value)
    if isinstance(value, list | tuple):
        return "; ".join(_worded(each) for each in value)
    return str(value)


def _texts(texts: Sequence[Texts], extension: str) -> list[str]:
    found = []
    for number, text in enumerate(texts):
        kernel = f" of kernel {number}" if number else ""
        if text.variant is not None:
            found.append(_lines(f"equations{kernel}", text.variant))
        found.append(_lines(f"schedule{kernel}", text.schedule))
        found.append(_lines(f"source{kernel}, .{extension}", text.source))
    return found


def _lines(title: str, text: str) -> str:
    return f"{title}:\n{text.rstrip()}\n" if text else ""


def _opened(found: Machine, name: str) -> Served:
    """A backend that need not work on this machine, because a source can be emitted anywhere."""
    try:
        backend = backend_for(found, name)
        return Served(backend, served_by(found, backend))
    except KernelError as error:
        raise (error if error.where else error.within("--show")) from None
