"""Memory transactions of a run: bank conflicts of shared memory and sectors of global memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from backends.gpu.layout.access import Banks
from backends.gpu.threads.interpreter.faults import BANK_CONFLICT, ThreadFault
from backends.gpu.threads.text import statement_text
from backends.gpu.threads.thread import Statement
from backends.gpu.tile import Name

BANKS = Banks(32)
SECTOR_BYTES = 32
IDLE = -1  # the address of an inactive thread
MEASURED = 16  # executions of a global memory access whose sectors are counted
_KEPT = 1 << 10  # accesses whose sectors are cached


@dataclass(slots=True)
class Traffic:
    """The transactions of one statement in one memory."""

    launch: str
    statement: Statement
    memory: str  # "shared" or "global"
    name: Name  # of the tile, or of the tensor's pointer
    executions: int = 0
    # Counted executions: all of shared memory, the first `MEASURED` of global memory.
    measured: int = 0
    transactions: int = 0  # wavefronts of shared memory, sectors of global memory
    least: int = 0  # the fewest that could move the same bytes

    def add(self, cost: tuple[int, int]) -> None:
        """Adds the transactions of one execution, and the least."""
        self.measured += 1
        self.transactions += cost[0]
        self.least += cost[1]


@dataclass(frozen=True, slots=True)
class Counts:
    """The transactions of a run, a row for each statement that accesses memory."""

    rows: tuple[Traffic, ...]

    def conflicts(self, tile: Name, launch: str = "") -> int:
        """Wavefronts of all accesses of a shared memory tile beyond the least."""
        return sum(
            r.transactions - r.least
            for r in self.rows
            if r.memory == "shared" and r.name == tile and launch in ("", r.launch)
        )

    def __str__(self) -> str:
        return "\n".join(
            f"{r.executions:8} x {r.transactions:8} / {r.least:8} {r.memory:6} "
            f"{r.launch}: {statement_text(r.statement)}"
            for r in self.rows
        )


def require_no_conflicts(counts: Counts, *tiles: Name, launch: str = "") -> None:
    """Raises ThreadFault where an access of one of these tiles has bank conflicts."""
    for tile in tiles:
        for r in counts.rows:
            if r.memory == "shared" and r.name == tile and launch in ("", r.launch):
                if r.transactions > r.least:
                    raise ThreadFault(
                        BANK_CONFLICT,
                        f"`{tile.stem}` takes {r.transactions} wavefronts where {r.least} move as "
                        "many bytes",
                        "swizzle the tile, or pad its rows: `choose_swizzle` finds one",
                        r.launch,
                        None,
                        (),
                        statement_text(r.statement),
                    )


def wavefronts(
    addresses: np.ndarray, width: int, together: int = 0, banks: Banks = BANKS
) -> tuple[int, int]:
    """The wavefronts of shared memory accesses, and the fewest without bank conflicts.

    addresses: [accesses, threads], first bytes, or IDLE.
    width: bytes of each thread.
    together: threads that are served at once; 0: as many as the banks have bytes for.
    """
    count, threads = addresses.shape
    together = together or max(1, banks.count * banks.width // max(width, banks.width))
    phases = -(-threads // together)
    group = np.arange(count)[:, None] * phases + np.arange(threads)[None, :] // together
    words = addresses[:, :, None] // banks.width + np.arange(max(1, width // banks.width))
    group = np.broadcast_to(group[:, :, None], words.shape)[addresses != IDLE]
    words = words[addresses != IDLE]
    if not words.size:
        return 0, 0
    span = int(words.max()) + 1
    distinct = np.unique(group * span + words)
    banked, times = np.unique(
        distinct // span * banks.count + distinct % span % banks.count, return_counts=True
    )
    groups, first = np.unique(banked // banks.count, return_index=True)
    return int(np.maximum.reduceat(times, first).sum()), len(groups)


def sectors(addresses: np.ndarray, width: int) -> tuple[int, int]:
    """The sectors that global memory accesses touch, and the fewest for the same bytes.

    addresses: [accesses, threads], first bytes, or IDLE.
    width: bytes of each thread.

    Patterns repeat between blocks and runs, so patterns that differ by whole sectors are counted
    once.
    """
    used = addresses != IDLE
    if not used.any():
        return 0, 0
    first = int(addresses.min(where=used, initial=np.iinfo(np.int64).max))
    alike = np.where(used, addresses - first // SECTOR_BYTES * SECTOR_BYTES, IDLE)
    return _sectors(alike.astype(np.int64).tobytes(), addresses.shape, width)


@lru_cache(_KEPT)
def _sectors(alike: bytes, shape: tuple[int, int], width: int) -> tuple[int, int]:
    """`sectors` for addresses as bytes, at least one of which is not IDLE."""
    addresses = np.frombuffer(alike, np.int64).reshape(shape)
    used = addresses != IDLE
    access = np.broadcast_to(np.arange(len(addresses))[:, None], addresses.shape)[used]
    starts = addresses[used]
    span = int(starts.max()) + width + SECTOR_BYTES
    ends = (starts % SECTOR_BYTES + width - 1) // SECTOR_BYTES
    touched = [
        access[ends >= n] * span + starts[ends >= n] // SECTOR_BYTES + n
        for n in range(int(ends.max()) + 1)
    ]
    moved = np.unique(access * span + starts)
    bytes_of = np.bincount(moved // span) * width
    return len(np.unique(np.concatenate(touched))), int((-(-bytes_of // SECTOR_BYTES)).sum())
