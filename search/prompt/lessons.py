"""Lessons of earlier runs: skill files, which later runs retrieve and count on.

They lie in a folder beside a store that is a file, and in the store itself where that is a server's.
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
OTHER_TARGET = 0.5  # what a lesson counts where the target is another one of the same backend
PRIOR = 8.0  # tries of a verb that nothing is known of, at the rate of all verbs together
MOST = 4.0  # of a weight; the least is one over it


class Shelf(Protocol):
    """Where lessons are kept."""

    @property
    def place(self) -> str:
        """For messages."""

    def add(self, lesson: Document) -> None:
        """Keeps a lesson in place of one of the same name; KernelError where it cannot."""

    def documents(self) -> Iterable[Document]:
        """All that are kept, by name; KernelError for what is no document."""


@dataclass(frozen=True, slots=True)
class Folder:
    """Skill files in a folder, which need not be there yet."""

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
        """What the files hold."""
        return documents(self.path)


class LessonStore(Protocol):
    """A store that keeps lessons."""

    url: str  # for messages

    def lessons(self) -> Mapping[str, str]:
        """The texts of lessons by name."""

    def learned(self, name: str, text: str) -> None:
        """Keeps a lesson in place of an earlier one of the same name."""


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
        """What the rows hold."""
        for name, text in self.store.lessons().items():
            yield document(name, text, f"{self.place}, lesson {name}")


@dataclass(frozen=True, slots=True)
class Lessons:
    """The lessons on a shelf."""

    shelf: Shelf

    def add(self, lesson: Lesson) -> None:
        """Keeps a lesson, in place of an earlier one of the same run."""
        self.shelf.add(lesson.document)

    def documents(self, machine: Machine) -> tuple[Document, ...]:
        """The lessons of a machine's backends, by name; those of the machine itself first.

        KernelError where something else lies there.
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
        """How much more often than others a verb's edits made a candidate faster.

        kinds: of the spec's operations; a lesson counts by the share of kinds that it has in
        common, and half as much where it is of another target of the backend. 1: as often as
        edits do on the whole; between 1 / `MOST` and `MOST`. Verbs that no lesson tried are
        missing; with no lessons, all are.
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
    """The folder of the lessons of a store, given the path or the URL of its file."""
    return Path(file.removeprefix("sqlite:///")).parent / FOLDER


def _rate(faster: float, tries: float, usual: float) -> float:
    return (faster + PRIOR * usual) / (tries + PRIOR)


def _likeness(d: Document, kinds: Collection[str]) -> float:
    """The share of operations that two kernels have in common (Jaccard's)."""
    either = set(d.operations) | set(kinds)
    return len(set(d.operations) & set(kinds)) / len(either) if either else 1.0
