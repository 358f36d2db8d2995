"""Faults of thread programs: what no GPU does as it was meant."""

from __future__ import annotations

READ_AFTER_WRITE = "read after write"  # of another thread, without a barrier between
WRITE_AFTER_READ = "write after read"
WRITE_AFTER_WRITE = "write after write"  # of different values
STAGE_IN_USE = "stage in use"  # a copy overwrites what is read, or what another copy fills
COPY_IN_FLIGHT = "copy in flight"  # accessed before the wait for it
MATMUL_IN_FLIGHT = "matmul in flight"  # its result is read before the wait for it
DIVERGENT = "divergent barrier"  # or shuffle or matrix instruction: some threads do not reach it
OUT_OF_BOUNDS = "out of bounds"
UNINITIALISED = "uninitialised"
LAYOUT = "layout"  # elements that have several owners or none
FRAGMENT = "wrong fragment"  # registers that are not the elements that a statement takes them for
VECTOR = "vector"  # elements that do not move with one instruction
SIGNAL = "signal"  # arrivals or bytes that no phase of it counts
DEADLOCK = "deadlock"  # all roles of a block, or all blocks that run, wait
FLAG = "flag"  # what another block wrote is read without its flag, or the flag is raised too early
FENCE = "fence"  # there is none between a flag and what it tells of
OVERLAP = "overlap"  # two blocks write one element
CLUSTER = "cluster"  # a block is reached that may not have begun, or may have left
SHARED_MEMORY = "shared memory"  # more of it than a block may have
BANK_CONFLICT = "bank conflict"  # where a tile promised that there is none


class ThreadFault(AssertionError):
    """A fault of a thread program, with where it is and what to do.

    kind: one of the constants of this module. threads: numbers in their block, those that are known.
    """

    def __init__(
        self,
        kind: str,
        what: str,
        hint: str,
        launch: str = "",
        block: int | None = None,
        threads: tuple[int, ...] = (),
        statement: str = "",
    ):
        super().__init__(what)
        self.kind = kind
        self.what = what
        self.hint = hint
        self.launch = launch
        self.block = block
        self.threads = threads
        self.statement = statement

    def __str__(self) -> str:
        places = [
            *([self.launch] if self.launch else []),
            *([f"block {self.block}"] if self.block is not None else []),
            *([f"thread {' and '.join(map(str, self.threads))}"] if self.threads else []),
        ]
        lines = [f"{self.kind}: {', '.join(places)}: {self.what}"]
        lines += [f"  in: {self.statement}"] if self.statement else []
        return "\n".join([*lines, f"  hint: {self.hint}"])
