"""Who works on a run: a process, told from one that has ended and from one elsewhere."""

from __future__ import annotations

import json
import os
import socket
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

ABANDONED_SECONDS = 3600.0  # without a write, after which a process elsewhere counts as ended


@dataclass(frozen=True, slots=True)
class Holder:
    """A process. Parts are empty where the system does not say them."""

    host: str
    boot: str  # identifies the time since the host was started
    space: str  # of process numbers, which containers have of their own
    process: int
    began: str  # when, since the host was started: numbers are used again

    @property
    def text(self) -> str:
        """As a store has it; `holder_of` reads it."""
        return json.dumps(asdict(self))

    def __str__(self) -> str:
        return f"process {self.process} on {self.host}"

    def has_ended(self, idle_seconds: float) -> bool:
        """Whether it works no longer. idle_seconds: since its last write, which decides where it
        cannot be looked up from here."""
        own = here()
        if self.host == own.host and self.boot != own.boot:
            return True
        if (self.host, self.space) != (own.host, own.space):
            return idle_seconds > ABANDONED_SECONDS
        return _began(self.process) != self.began if own.began else not _is_there(self.process)


def holder_of(text: str) -> Holder:
    """The holder that `Holder.text` wrote."""
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
    """When a process began; None where it does not run."""
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    state, *rest = text.rpartition(")")[2].split()  # the name before it may hold anything
    return None if state in "ZX" else rest[18]


def _is_there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
