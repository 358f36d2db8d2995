"""Lessons of earlier runs: skill files that later runs retrieve, and whose counts they use.

If the store is a file, lessons are in a folder next to it; if it is on a server, they are in the
store.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ir.errors import KernelError
from ir.machine import Machine
from search.prompt.document import Document, document
from search.prompt.knowledge import documents
from search.prompt.lesson import Lesson

FOLDER = "lessons"
OTHER_TARGET = 0.5  # weight of a lesson for another target of the same backend
PRIOR = 8.0  # assumed tries of each verb, at the mean rate of all verbs
MOST = 4.0  # largest factor; the smallest is its inverse


class Shelf(Protocol):
    """A place for lessons."""

    @property
    def place(self) -> str:
        """The place, for messages."""

    def add(self, lesson: Document) -> None:
        """Stores a lesson. Replaces one of the same name. Raises KernelError if that fails."""

    def documents(self) -> Iterable[Document]:
        """All lessons by name. Raises KernelError for an invalid document."""


@dataclass(frozen=True, slots=True)
class Folder:
    """Skill files in a folder, which need not exist yet."""

    path: Path

    @property
    def place(self) -> str:
        """The folder."""
        return str(self.path)

    def add(self, lesson: Document) -> None:
        """Writes a file."""
        file = self.path / f"{lesson.name}.md"
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            file.write_text(lesson.file_text, encoding="utf-8")
        except OSError as error:
            raise KernelError(
                f"a lesson cannot be written: {error.strerror}",
                where=str(file),
                hint="choose another folder, or go without lessons",
            ) from None

    def documents(self) -> Iterable[Document]:
        """The documents in the files."""
        return documents(self.path)


class LessonStore(Protocol):
    """A store with lessons."""

    url: str  # for messages

    def lessons(self) -> Mapping[str, str]:
        """The texts of lessons by name."""

    def learned(self, name: str, text: str) -> None:
        """Stores a lesson. Replaces one of the same name."""


@dataclass(frozen=True, slots=True)
class InStore:
    """Rows of a store that several machines share."""

    store: LessonStore

    @property
    def place(self) -> str:
        """The store."""
        return self.store.url

    def add(self, lesson: Document) -> None:
        """Writes a row."""
        self.store.learned(lesson.name, lesson.file_text)

    def documents(self) -> Iterable[Document]:
        """The documents in the rows."""
        for name, text in self.store.lessons().items():
            yield document(name, text, f"{self.place}, lesson {name}")


@dataclass(frozen=True, slots=True)
class Lessons:
    """The lessons of a shelf."""

    shelf: Shelf

    def add(self, lesson: Lesson) -> None:
        """Stores a lesson. Replaces an earlier one of the same run."""
        self.shelf.add(lesson.document)

    def documents(self, machine: Machine) -> tuple[Document, ...]:
        """The lessons of a machine's backends by name; those of the machine itself come first.

        Raises KernelError if the place has other documents.
        """
        all_here = tuple(map(self._lesson, self.shelf.documents()))
        found = [d for d in all_here if d.provenance["backend"] in machine.backends]
        return tuple(sorted(found, key=lambda d: (d.provenance["target"] != machine.name, d.name)))

    def _lesson(self, d: Document) -> Document:
        if d.kind != "skill":
            raise KernelError(
                f"`{d.name}` is a document of kind `{d.kind}`",
                where=self.shelf.place,
                allowed="lessons, which are of kind `skill`",
                hint="move it elsewhere",
            )
        return d

    def preferences(self, machine: Machine, kinds: Collection[str]) -> Mapping[str, float]:
        """The relative rate at which a verb's edits made a candidate faster.

        1 is the mean rate; values are between 1 / `MOST` and `MOST`. Verbs without tries are
        missing. kinds: of the spec's operations. A lesson's weight is the share of common kinds,
        and half of that for another target of the backend.
        """
        tries: dict[str, float] = {}
        faster: dict[str, float] = {}
        for d in self.documents(machine):
            near = _likeness(d, kinds)
            near *= 1.0 if d.provenance["target"] == machine.name else OTHER_TARGET
            for verb, table in d.verbs.items() if near else ():
                tries[verb] = tries.get(verb, 0.0) + near * table["tries"]
                faster[verb] = faster.get(verb, 0.0) + near * table["faster"]
        usual = (sum(faster.values()) + 1) / (sum(tries.values()) + 2)
        return {
            verb: min(MOST, max(1 / MOST, _rate(faster[verb], tries[verb], usual) / usual))
            for verb in sorted(tries)
        }


def beside(file: str) -> Path:
    """The folder of the lessons of a store, from the path or URL of its file."""
    return Path(file.removeprefix("sqlite:///")).parent / FOLDER


def _rate(faster: float, tries: float, usual: float) -> float:
    return (faster + PRIOR * usual) / (tries + PRIOR)


def _likeness(d: Document, kinds: Collection[str]) -> float:
    """The share of operations that two kernels have in common (Jaccard index)."""
    either = set(d.operations) | set(kinds)
    return len(set(d.operations) & set(kinds)) / len(either) if either else 1.0
