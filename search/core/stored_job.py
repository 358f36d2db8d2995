"""The stored data of a job, and the interface of its store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class StoredRound:
    """A round of a job: one search continues for some evaluations."""

    number: int  # in the job, from 0
    search: int  # number of the search in the job, from 0
    evaluations: int  # total evaluations of the search at the end of the round
    run: str = ""  # run of the search; empty if it had not started
    ended: str = ""  # why the round ended; empty if it did not
    over: bool = False  # the search is finished


@dataclass(frozen=True, slots=True)
class StoredJob:
    """A job as stored."""

    job: str
    text: str  # JSON text of the code that made it
    started: float  # seconds since 1970
    rounds: tuple[StoredRound, ...]


class JobKeeper(Protocol):
    """Stores jobs. Each method is atomic, and raises KernelError if it fails."""

    def add(self, stem: str, text: str) -> str:
        """Adds a new job, which this process works on, and returns its name."""

    def load(self, job: str) -> StoredJob:
        """A job. Raises KernelError if there is none of that name."""

    def resume(self, job: str) -> StoredJob:
        """A job that this process continues. Raises KernelError if there is none of that name, or
        if another process works on it."""

    def begin(self, job: str, begun: StoredRound) -> None:
        """Stores a round before it begins."""

    def end(self, job: str, number: int, ended: str, over: bool) -> None:
        """Stores the end of a round."""

    def let_go(self, job: str) -> None:
        """Ends this process's work on the job."""
