"""The process that works on a run: recognises it, whether it has ended, and whether it is on
another host."""

from __future__ import annotations

import json
import os
import socket
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

# seconds without a write, after which a process elsewhere counts as ended
ABANDONED_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Holder:
    """A process. Parts are empty if the system does not report them."""

    host: str
    boot: str  # id of the host's current boot
    space: str  # process namespace, because containers have their own
    process: int
    began: str  # start time since boot, because process ids are reused

    @property
    def text(self) -> str:
        """The holder as a text for the store, which `holder_of` reads."""
        return json.dumps(asdict(self))

    def __str__(self) -> str:
        return f"process {self.process} on {self.host}"

    def has_ended(self, idle_seconds: float) -> bool:
        """Whether it has ended. idle_seconds: since its last write; used if its state is not
        visible from here."""
        own = here()
        if self.host == own.host and self.boot != own.boot:
            return True
        if (self.host, self.space) != (own.host, own.space):
            return idle_seconds > ABANDONED_SECONDS
        return _began(self.process) != self.began if own.began else not _is_there(self.process)


def holder_of(text: str) -> Holder:
    """The holder of a text by `Holder.text`."""
    return Holder(**json.loads(text))


def here() -> Holder:
    """This process."""
    return _of(os.getpid())


@cache
def _of(process: int) -> Holder:
    try:
        space = os.readlink("/proc/self/ns/pid")
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        space = boot = ""
    return Holder(socket.gethostname(), boot, space, process, _began(process) or "")


def _began(process: int) -> str | None:
    """The start time of a process; None if it does not run."""
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    state, *rest = text.rpartition(")")[2].split()  # the name before `)` may contain any character
    return None if state in "ZX" else rest[18]


def _is_there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
