"""The knowledge base: documents in folders, with an index."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from backends import manifest
from ir.errors import KernelError
from search.prompt.document import Document, document

SHARED = Path(__file__).parents[1] / "knowledge"  # documents for all targets
_BACKENDS = Path(manifest.__file__).parent


@dataclass(frozen=True, slots=True)
class Library:
    """Documents with unique names, in alphabetical order within a folder."""

    documents: tuple[Document, ...]

    def __iter__(self) -> Iterator[Document]:
        return iter(self.documents)

    def __len__(self) -> int:
        return len(self.documents)

    def named(self, name: str) -> Document:
        """The document with a name. Raises KernelError if there is none."""
        for d in self.documents:
            if d.name == name:
                return d
        raise KernelError(
            f"there is no document `{name}`", allowed=", ".join(d.name for d in self.documents)
        )

    @property
    def index(self) -> str:
        """A line for each document: name, kind, tags, title and first sentence."""
        return "".join(f"- {d.entry}\n" for d in self.documents)

    def with_documents(self, more: Iterable[Document]) -> Library:
        """The library with further documents. A later document replaces one with the same name."""
        found = {d.name: d for d in (*self.documents, *more)}
        return Library(tuple(found.values()))


def notes(backend: str) -> Path:
    """The folder of a backend's notes, which need not exist."""
    return _BACKENDS / backend / "notes"


def library(folders: Sequence[Path]) -> Library:
    """The documents of some folders, in order.

    Raises KernelError for an invalid document, and for a duplicate name.
    """
    found: dict[str, Document] = {}
    for folder in folders:
        for d in _documents(folder):
            if d.name in found:
                raise KernelError(
                    f"two documents are called `{d.name}`",
                    where=str(folder),
                    hint="give each document in all folders a different name",
                )
            found[d.name] = d
    return Library(tuple(found.values()))


def library_of(backend: str) -> Library:
    """The documents for all targets, and a backend's own."""
    return library((SHARED, notes(backend)))


def documents(folder: Path) -> Iterator[Document]:
    """The documents of a folder, by name; none if there is no such folder."""
    for file in sorted(folder.glob("*.md")):
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise KernelError(f"a document cannot be read: {error}", where=str(file)) from None
        yield document(file.stem, text, str(file))


@lru_cache(maxsize=32)
def _documents(folder: Path) -> tuple[Document, ...]:
    return tuple(documents(folder))
