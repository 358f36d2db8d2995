"""Lessons of earlier runs: skill files in a folder, which later runs retrieve and count on."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from ir.errors import KernelError
from ir.machine import Machine
from search.prompt.document import Document
from search.prompt.knowledge import documents
from search.prompt.lesson import Lesson

FOLDER = "lessons"
OTHER_TARGET = 0.5  # what a lesson counts where the target is another one of the same backend
PRIOR = 8.0  # tries of a verb that nothing is known of, at the rate of all verbs together
MOST = 4.0  # of a weight; the least is one over it


@dataclass(frozen=True, slots=True)
class Lessons:
    """The lessons in a folder; it need not be there yet."""

    folder: Path

    def add(self, lesson: Lesson) -> Path:
        """Writes a lesson down, in place of an earlier one of the same run; gives its file."""
        found = lesson.document
        file = self.folder / f"{found.name}.md"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            file.write_text(found.file_text, encoding="utf-8")
        except OSError as error:
            raise KernelError(
                f"a lesson cannot be written: {error.strerror}",
                where=str(file),
                hint="choose another folder, or go without lessons",
            ) from None
        return file

    def documents(self, machine: Machine) -> tuple[Document, ...]:
        """The lessons of a machine's backends, by name; those of the machine itself first.

        KernelError where something else lies in the folder.
        """
        all_here = tuple(map(self._lesson, documents(self.folder)))
        found = [d for d in all_here if d.provenance["backend"] in machine.backends]
        return tuple(sorted(found, key=lambda d: (d.provenance["target"] != machine.name, d.name)))

    def _lesson(self, d: Document) -> Document:
        if d.kind != "skill":
            raise KernelError(
                f"`{d.name}` is a document of kind `{d.kind}`",
                where=str(self.folder),
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


def beside(store: str) -> Lessons:
    """The lessons beside a store that lies in a file; KernelError for a store elsewhere."""
    path = store.removeprefix("sqlite:///")
    if "://" in path:
        raise KernelError(
            "there is no folder beside a store that is not a file",
            where=store,
            hint="say where lessons are to lie",
        )
    return Lessons(Path(path).parent / FOLDER)


def _rate(faster: float, tries: float, usual: float) -> float:
    return (faster + PRIOR * usual) / (tries + PRIOR)


def _likeness(d: Document, kinds: Collection[str]) -> float:
    """The share of operations that two kernels have in common (Jaccard's)."""
    either = set(d.operations) | set(kinds)
    return len(set(d.operations) & set(kinds)) / len(either) if either else 1.0
