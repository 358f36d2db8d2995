"""The toolchain's digest: everything that an outcome depends on, besides the candidate."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path

import backends
import ir
import machines
from backends.registry import backend_names
from ir.digest import LENGTH, text_digest
from search.evaluator.stages import Bench

_IGNORED = ("__pycache__", "notes", "targets")  # targets: the machine itself is in the digest
_PACKAGES = ("numpy", "jinja2", "pybind11")


def bench_digest(bench: Bench, here: Mapping[str, str]) -> str:
    """The digest of sizes, checks, machine and toolchain: equal if outcomes can be shared.

    here: the backend's description of this machine: its toolchain, its device.
    """
    return text_digest(
        json.dumps(
            {
                "spec": bench.spec,
                "machine": repr(bench.machine),
                "sizes": sorted(bench.sizes.items()),
                "checks": [sorted(c.items()) for c in bench.checks],
                "secret": bench.secret,
                "limits": repr(bench.limits),
                "workload": [(sorted(s.sizes.items()), s.weight) for s in bench.workload],
                "partly": bench.partly,
                "toolchain": toolchain_digest(),
                "here": sorted((k, v) for k, v in here.items() if k != "clocks"),
            }
        )
    )


def toolchain_digest() -> str:
    """The digest of everything between a schedule and a result: sources, templates, versions."""
    digest = hashlib.sha256(f"{platform.python_version()} {platform.machine()}".encode())
    for name in _PACKAGES:
        try:
            digest.update(f"{name} {metadata.version(name)}".encode())
        except metadata.PackageNotFoundError:
            digest.update(f"{name} none".encode())
    for folder in folders():
        for file in _files(folder):
            digest.update(str(file.relative_to(folder)).encode() + b"\0")
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:LENGTH]


def folders() -> list[Path]:
    """The folders of the IR, the machine classes, the backends and their templates."""
    known = (ir, machines, backends)
    packages = [Path(folder) for package in known for folder in package.__path__]
    templates = packages[0].parent / "templates"
    return [*packages, *(templates / name for name in backend_names(for_tests=True))]


def _files(folder: Path) -> Iterator[Path]:
    """All files of a folder in a fixed order, except tests and hidden files."""
    for file in sorted(folder.rglob("*")):
        inside = file.relative_to(folder).parts
        if any(p in _IGNORED or p.startswith(".") for p in inside):
            continue
        if file.is_file() and not file.name.endswith("_test.py"):
            yield file
