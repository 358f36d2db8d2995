"""A folder of kernels that another machine built: their files, with the digest of each.

built.json            target, schedules, toolchains; figures and digests of each kernel
KERNEL-BACKEND/       a source, its launches, and its code objects
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backends.backend import Built
from backends.registry import target
from ir.errors import KernelError

INDEX = "built.json"
MAKE = "make it by python3 -m benchmarks.prebuilt"


@dataclass(frozen=True, slots=True)
class BuiltFolder:
    """The contents of such a folder."""

    folder: Path
    target: str
    schedules: str  # The target whose records provide the schedules.
    toolchains: Mapping[str, str]  # By backend.
    # By the name of a kernel's folder: `figures`, `sha256` of the timed code, and `files` with the
    # sha256 of each file; or a `failure`.
    kernels: Mapping[str, Mapping[str, Any]]

    def has(self, kernel: str, language: str) -> bool:
        """Whether a backend built a kernel, or failed to."""
        return place(kernel, language) in self.kernels

    def built(self, kernel: str, language: str, source: str) -> Built:
        """Returns a build.

        Raises KernelError if a file has changed since the build, or if it was built from another
        source.
        """
        name = place(kernel, language)
        row = self.kernels[name]
        if "failure" in row:
            raise KernelError(str(row["failure"]), where=name)
        for file, digest in row["files"].items():
            found = sha256(self.folder / name / file)
            if found != digest:
                raise KernelError(
                    f"{file} has sha256 {found}; {digest} was built", where=name, hint=MAKE
                )
        file = self.folder / name / row["source"]
        if file.read_text(encoding="utf-8") != source:
            raise KernelError(
                "it was built from another source than this checkout emits", where=name, hint=MAKE
            )
        return Built(file, row["figures"], row["sha256"])


def place(kernel: str, language: str) -> str:
    """Returns the name of a kernel's folder."""
    return f"{kernel}-{language}"


def read_built(folder: Path, name: str) -> BuiltFolder:
    """Reads a folder for a target, or for a target with the same code. Raises KernelError if it is
    not one."""
    try:
        table = json.loads((folder / INDEX).read_text(encoding="utf-8"))
        found = BuiltFolder(
            folder, table["target"], table["schedules"], table["toolchains"], table["kernels"]
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise KernelError(
            f"this is no folder of built kernels: {error}", where=str(folder), hint=MAKE
        ) from None
    if found.target != name and not _same_code(found, name):
        raise KernelError(f"its kernels are for `{found.target}`", where=str(folder), allowed=name)
    return found


def _same_code(built: BuiltFolder, name: str) -> bool:
    """Whether code for the folder's target also runs on another one: both have one architecture.

    `BuiltFolder.built` checks that the sources are equal.
    """
    here, there = (target(one).details for one in (name, built.target))
    return all(here.get(x) == there.get(x) is not None for x in built.toolchains)


def sha256(file: Path) -> str:
    """Returns the digest of a file's bytes. Raises KernelError if it cannot be read."""
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError as error:
        raise KernelError(f"it cannot be read: {error}", where=str(file), hint=MAKE) from None
