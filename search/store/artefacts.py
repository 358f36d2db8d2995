"""Artefacts: large texts that are stored outside of the database, under the digest of their bytes.

A row then has a reference in place of the text. Several machines may share the place: a folder, or
any URL that fsspec supports. An artefact is written atomically before the row that refers to it.
Its digest is verified on reading.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from ir.errors import KernelError
from search.store.address import is_url, without_password

LEAST = 16_384  # smallest number of characters of an artefact
OPTION = "--artefacts"
FRESH = 3600.0  # seconds during which a row may still come to refer to a new artefact
_REFERENCE = re.compile(r"artefact sha256:([0-9a-f]{64})")  # not valid JSON, so it cannot be a text
_KEY = "artefact"  # key of a reference within JSON
_ENDING = ".part"  # suffix of a file that is being written


class Files(Protocol):
    """A place for artefacts: files by name, `ab/cdef...`."""

    address: str  # address for a person, without a password

    def read(self, name: str) -> bytes | None:
        """The contents of a file; None if it does not exist."""

    def write(self, name: str, data: bytes) -> None:
        """Writes a file atomically. The age of an existing file starts again."""

    def ages(self) -> Mapping[str, float]:
        """Seconds since each file was written, by name, including unfinished files."""

    def remove(self, name: str) -> None:
        """Removes a file if it exists."""


class Artefacts:
    """The artefacts of one store."""

    def __init__(self, files: Files):
        self.files = files

    def kept(self, text: str) -> str:
        """The text for a row: a reference if the text is large."""
        return f"artefact sha256:{self._put(text)}" if len(text) >= LEAST else text

    def kept_source(self, table: dict[str, Any]) -> dict[str, Any]:
        """A candidate's table for a row, with a reference in place of a large source."""
        source = table["source"]
        if source is None or len(source) < LEAST:
            return table
        return table | {"source": {_KEY: self._put(source)}}

    def text(self, digest: str) -> str:
        """The text of an artefact. Raises KernelError if it is missing or damaged."""
        data = self.files.read(_name(digest))
        if data is None:
            raise KernelError(
                f"the artefact sha256:{digest} is missing",
                where=self.files.address,
                hint=f"bring it back, or name the folder of the store's artefacts with {OPTION}",
            )
        found = hashlib.sha256(data).hexdigest()
        if found != digest:
            raise KernelError(
                f"the artefact sha256:{digest} is damaged: its digest is {found}",
                where=self.files.address,
                hint="bring it back from a copy",
            )
        return data.decode()

    def collect(self, needed: set[str]) -> tuple[int, int]:
        """Removes artefacts that are neither needed nor new. Returns how many were removed and how
        many are left.

        needed: digests.
        """
        names = {_name(digest) for digest in needed}
        ages = self.files.ages()
        gone = [name for name, age in ages.items() if name not in names and age > FRESH]
        for name in gone:
            self.files.remove(name)
        return len(gone), len(ages) - len(gone)

    def _put(self, text: str) -> str:
        data = text.encode()
        digest = hashlib.sha256(data).hexdigest()
        self.files.write(_name(digest), data)
        return digest


def read_text(stored: str, artefacts: Artefacts | None) -> str:
    """The text of a row, or of the artefact that it refers to."""
    found = _REFERENCE.fullmatch(stored)
    return _found(found[1], artefacts) if found else stored


def read_source(table: Mapping[str, Any], artefacts: Artefacts | None) -> dict[str, Any]:
    """A candidate's table from a row, with its source."""
    source = table["source"]
    if not isinstance(source, dict):
        return dict(table)
    return {**table, "source": _found(source[_KEY], artefacts)}


def whole_row(row: Mapping[Any, Any], artefacts: Artefacts | None) -> dict[str, Any]:
    """A row of any table, with texts in place of references."""
    found = dict(row)
    for column in ("request", "reply"):
        if column in found:
            found[column] = read_text(found[column], artefacts)
    if "candidate" in found and _KEY in found["candidate"]:
        found["candidate"] = json.dumps(read_source(json.loads(found["candidate"]), artefacts))
    return found


def referred(row: Mapping[Any, Any]) -> Iterator[str]:
    """The digests that a row refers to."""
    for column in ("request", "reply"):
        if column in row and (found := _REFERENCE.fullmatch(row[column])):
            yield found[1]
    if _KEY in row.get("candidate", ""):
        source = json.loads(row["candidate"])["source"]
        if isinstance(source, dict):
            yield source[_KEY]


def is_reference(stored: str) -> bool:
    """Whether a row has a reference in place of JSON."""
    return _REFERENCE.fullmatch(stored) is not None


def artefacts_at(address: str, name: str) -> Artefacts:
    """The artefacts of a store by name. Raises KernelError if the address cannot be used."""
    return Artefacts(Remote(address, name) if is_url(address) else Folder(Path(address) / name))


class Folder:
    """Files in a folder, which is created with the first file."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.address = str(folder)

    def read(self, name: str) -> bytes | None:
        """See `Files`."""
        try:
            return (self.folder / name).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._fault("read", error) from error

    def write(self, name: str, data: bytes) -> None:
        """See `Files`."""
        file = self.folder / name
        try:
            with suppress(FileNotFoundError):
                if file.stat().st_size == len(data):
                    return os.utime(file)
            file.parent.mkdir(parents=True, exist_ok=True)
            part = file.with_name(f"{file.name}.{secrets.token_hex(4)}{_ENDING}")
            with part.open("wb") as out:
                out.write(data)
                out.flush()
                os.fsync(out.fileno())
            part.replace(file)
        except OSError as error:
            raise self._fault("written", error) from error
        return None

    def ages(self) -> Mapping[str, float]:
        """See `Files`."""
        found, now = {}, time.time()
        for file in self.folder.glob("*/*"):
            with suppress(FileNotFoundError):
                found[str(file.relative_to(self.folder))] = now - file.stat().st_mtime
        return found

    def remove(self, name: str) -> None:
        """See `Files`."""
        (self.folder / name).unlink(missing_ok=True)

    def _fault(self, what: str, error: OSError) -> KernelError:
        return KernelError(
            f"an artefact cannot be {what}: {error.strerror or error}",
            where=self.address,
            hint=f"name another place with {OPTION}",
        )


class Remote:
    """Files at a URL that fsspec supports."""

    def __init__(self, address: str, name: str):
        import fsspec  # optional: a folder needs only the standard library

        self.address = f"{without_password(address).rstrip('/')}/{name}"
        try:
            self._files, root = fsspec.core.url_to_fs(address)
        except (ImportError, ValueError) as error:
            raise self._fault("reached", error) from error
        self._root = f"{root.rstrip('/')}/{name}"

    def read(self, name: str) -> bytes | None:
        """See `Files`."""
        try:
            return self._files.cat_file(f"{self._root}/{name}")
        except FileNotFoundError:
            return None
        except Exception as error:  # each file system has its own exceptions
            raise self._fault("read", error) from error

    def write(self, name: str, data: bytes) -> None:
        """See `Files`."""
        path = f"{self._root}/{name}"
        part = f"{path}.{secrets.token_hex(4)}{_ENDING}"
        try:
            self._files.makedirs(path.rpartition("/")[0], exist_ok=True)
            self._files.pipe_file(part, data)
            self._files.mv(part, path)
        except Exception as error:
            raise self._fault("written", error) from error

    def ages(self) -> Mapping[str, float]:
        """See `Files`."""
        try:
            paths = self._files.find(self._root)
            now = time.time()
            return {
                path.removeprefix(self._root).lstrip("/"): now
                - self._files.modified(path).timestamp()
                for path in paths
            }
        except FileNotFoundError:
            return {}
        except Exception as error:
            raise self._fault("listed", error) from error

    def remove(self, name: str) -> None:
        """See `Files`."""
        with suppress(FileNotFoundError):
            self._files.rm_file(f"{self._root}/{name}")

    def _fault(self, what: str, error: Exception) -> KernelError:
        said = " ".join(str(error).split()) or type(error).__name__
        return KernelError(
            f"the artefacts cannot be {what}: {said}",
            where=self.address,
            allowed="a folder, or a URL of a kind that fsspec knows",
            hint=f"name another place with {OPTION}",
        )


def _found(digest: str, artefacts: Artefacts | None) -> str:
    if artefacts is None:
        raise KernelError(
            f"the artefact sha256:{digest} is needed",
            hint=f"name the folder of the store's artefacts with {OPTION}",
        )
    return artefacts.text(digest)


def _name(digest: str) -> str:
    return f"{digest[:2]}/{digest[2:]}"
