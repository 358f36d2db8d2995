"""What `--list-targets`, `--list-kernels` and `--version` say."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import Any

from backends.registry import backend, backend_names, target, target_names
from ir.errors import KernelError
from ir.parse.parse import parse_workload
from ir.print import signature
from search.cli.suite import ENDING, LIBRARY, library
from search.cli.tables import columns
from search.core import quantity

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
    """The list for a person; what backends have to say of this machine comes below it."""
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
    """Each kernel as plain data."""
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
    """The list for a person: a signature, and below it the tuning sizes and the title."""
    return "".join(
        f"{row['signature']}\n    {row['title']}\n    tuned for {quantity.shape(row['tune'] or {})}\n"
        for row in rows
    )


VERSION = "0.1.0"


def versions() -> dict[str, str]:
    """By name: of this project, of Python, and of what is installed of PyTorch and the packages
    that backends are named after."""
    packages = {name: _installed(name) for name in ("torch", *backend_names())}
    return {
        "speciate": VERSION,
        "python": platform.python_version(),
        **{name: version for name, version in packages.items() if version},
    }


def versions_text(found: Mapping[str, str]) -> str:
    """A line for each."""
    return "".join(f"{name} {version}\n" for name, version in found.items())


def _installed(package: str) -> str:
    """Empty where it is not."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""
