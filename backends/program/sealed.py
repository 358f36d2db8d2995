"""A sealed folder: files and a manifest with their checksums."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ir.errors import KernelError

MANIFEST = "manifest.json"
FORMAT = 1
_FIELDS = {"format": int, "facts": dict, "files": dict}


@dataclass(frozen=True, slots=True)
class Sealed:
    """A folder whose files match the manifest."""

    folder: Path
    facts: Mapping[str, Any]  # facts of the manifest
    files: tuple[str, ...]

    def bytes(self, name: str) -> bytes:
        """A file's content. KernelError if the manifest does not list the file."""
        if name not in self.files:
            raise KernelError(f"there is no file `{name}`", where=str(self.folder / MANIFEST))
        return (self.folder / name).read_bytes()

    def text(self, name: str) -> str:
        """A text file's content."""
        return self.bytes(name).decode("utf-8")

    def table(self, name: str) -> dict[str, Any]:
        """The table in a JSON file. KernelError if it holds anything else."""
        try:
            found = json.loads(self.text(name))
        except ValueError as error:
            raise KernelError(f"it is no JSON: {error}", where=str(self.folder / name)) from error
        if not isinstance(found, dict):
            raise KernelError("it is no table", where=str(self.folder / name))
        return found


def seal(
    folder: Path, files: Mapping[str, bytes], facts: Mapping[str, Any], overwrite: bool = False
) -> None:
    """Writes a sealed folder. An existing folder that is not empty is replaced only if `overwrite`
    is set and the folder is sealed; otherwise KernelError."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        if not overwrite or not (folder / MANIFEST).is_file():
            raise KernelError(
                "it is there already", where=str(folder), hint="give the name of a new folder"
            )
        shutil.rmtree(folder)
    for name, content in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    digests = {name: _digest(content) for name, content in files.items()}
    table = {"format": FORMAT, "facts": dict(facts), "files": digests}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MANIFEST).write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


def unseal(folder: Path) -> Sealed:
    """The folder after its files were checked. KernelError if the manifest is missing or malformed,
    or if a file is missing, changed, or not listed."""
    table = _manifest(folder / MANIFEST)
    there = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()} - {
        MANIFEST
    }
    for name, digest in table["files"].items():
        if name not in there:
            raise KernelError(f"the file `{name}` is missing", where=str(folder))
        if _digest((folder / name).read_bytes()) != digest:
            raise KernelError(
                f"the file `{name}` is not what was saved",
                where=str(folder),
                hint="save the program again; its files are not for editing",
            )
    if more := sorted(there - set(table["files"])):
        raise KernelError(f"the file `{more[0]}` is not part of what was saved", where=str(folder))
    return Sealed(folder, table["facts"], tuple(table["files"]))


def _manifest(file: Path) -> dict[str, Any]:
    try:
        table = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise KernelError(
            f"the manifest cannot be read: {error}",
            where=str(file),
            hint="give the folder that was saved",
        ) from error
    if not isinstance(table, dict) or set(table) != set(_FIELDS):
        raise KernelError(
            "the manifest has other fields", where=str(file), allowed=", ".join(_FIELDS)
        )
    for field, kind in _FIELDS.items():
        if not isinstance(table[field], kind):
            raise KernelError(f"`{field}` is no {kind.__name__}", where=str(file))
    if table["format"] != FORMAT:
        raise KernelError(f"the format is {table['format']}", where=str(file), allowed=str(FORMAT))
    return table


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
