"""Faults of thread programs: behaviour that is wrong or undefined on a GPU."""

from __future__ import annotations

READ_AFTER_WRITE = "read after write"  # of another thread, without a barrier between
WRITE_AFTER_READ = "write after read"
WRITE_AFTER_WRITE = "write after write"  # of different values
# A copy overwrites data that is still read, or that another copy writes
STAGE_IN_USE = "stage in use"
COPY_IN_FLIGHT = "copy in flight"  # accessed before the wait for it
MATMUL_IN_FLIGHT = "matmul in flight"  # its result is read before the wait for it
DIVERGENT = "divergent barrier"  # or shuffle or matrix instruction: some threads do not reach it
OUT_OF_BOUNDS = "out of bounds"
UNINITIALISED = "uninitialised"
LAYOUT = "layout"  # elements with several owners or none
FRAGMENT = "wrong fragment"  # registers that are not the elements that a statement expects
VECTOR = "vector"  # elements that one access cannot move
SIGNAL = "signal"  # arrivals or bytes that no phase expects
DEADLOCK = "deadlock"  # all roles of a block, or all running blocks, wait
FLAG = "flag"  # another block's data is read without its flag, or the flag is raised too early
FENCE = "fence"  # missing between a flag and the data that it announces
OVERLAP = "overlap"  # two blocks write one element
CLUSTER = "cluster"  # an access to a block that may not have begun, or may have exited
SHARED_MEMORY = "shared memory"  # more than a block may have
BANK_CONFLICT = "bank conflict"  # where a tile must have none


class ThreadFault(AssertionError):
    """A fault of a thread program, with its location and a hint.

    kind: one of the constants of this module. threads: thread indices in the block, as far as
    known.
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
