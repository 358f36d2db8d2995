"""What a store holds of a job, and what is asked of whoever keeps jobs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class StoredRound:
    """A round of a job: one search goes on."""

    number: int  # in the job, from 0
    search: int  # its number in the job, from 0
    evaluations: int  # that the search has in all when the round ends
    run: str = ""  # of the search; empty where it had not started
    ended: str = ""  # why the round ended; empty where it did not
    over: bool = False  # nothing more comes of the search


@dataclass(frozen=True, slots=True)
class StoredJob:
    """A job as it is stored."""

    job: str
    text: str  # JSON of whoever made it
    started: float  # seconds since 1970
    rounds: tuple[StoredRound, ...]


class JobKeeper(Protocol):
    """Keeps jobs, each method whole or not at all; KernelError where it cannot."""

    def add(self, stem: str, text: str) -> str:
        """A new job that this process works on; its name."""

    def load(self, job: str) -> StoredJob:
        """A job; KernelError where there is none of that name."""

    def resume(self, job: str) -> StoredJob:
        """A job that this process goes on with; KernelError as for `load`, and where another process
        works on it."""

    def begin(self, job: str, begun: StoredRound) -> None:
        """A round is about to begin."""

    def end(self, job: str, number: int, ended: str, over: bool) -> None:
        """A round has ended."""

    def let_go(self, job: str) -> None:
        """This process works on the job no longer."""
