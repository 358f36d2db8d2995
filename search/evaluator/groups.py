"""Control groups: totals of memory and of processes for all that one evaluation starts.

A system has one hierarchy of groups (version 2) or one for each controller (version 1); see
https://docs.kernel.org/admin-guide/cgroup-v2.html. A group lies below that of this process, which
needs the right to make it: root has it, and whoever a group was delegated to.
"""

from __future__ import annotations

import os
import secrets
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
PREFIX = "speciate-"
PATIENCE = 2.0  # seconds for the last of a group to end
SHARE = 0.75  # of the machine's memory that an evaluation may have at most
_CONTROLLERS = ("memory", "pids")


@dataclass(frozen=True, slots=True)
class Group:
    """A group of processes that share limits."""

    folders: tuple[Path, ...]  # one for each hierarchy
    held: str  # what is limited, in words

    def enter(self) -> str:
        """Puts this process into the group, with all that it starts; what is limited."""
        for folder in self.folders:
            (folder / "cgroup.procs").write_text("0")
        return self.held

    def out_of_memory(self) -> bool:
        """Whether the kernel ended a process because the group had no memory left."""
        for file in ("memory.events", "memory.oom_control"):
            for folder in self.folders:
                with suppress(OSError):
                    words = (folder / file).read_text().split()
                    if int(dict(zip(words[::2], words[1::2], strict=False)).get("oom_kill", 0)):
                        return True
        return False

    def remove(self) -> None:
        """Ends what is left in the group, then the group."""
        until = time.monotonic() + PATIENCE
        while (left := {n for folder in self.folders for n in _members(folder)}) and (
            time.monotonic() < until
        ):
            for number in left:
                with suppress(ProcessLookupError):
                    os.kill(number, signal.SIGKILL)
            time.sleep(0.005)
        for folder in self.folders:
            with suppress(OSError):
                folder.rmdir()


def made(memory: int | None, processes: int | None) -> Group:
    """A new group; OSError, with the reason, where this process cannot make one.

    memory: bytes of all its processes and files in memory together.  processes: threads included.
    None: not limited.
    """
    limits = {"memory": memory and min(memory, _most()), "pids": processes}
    asked = {name: most for name, most in limits.items() if most is not None}
    if not asked:
        raise OSError(0, "not asked for")
    name = f"{PREFIX}{os.getpid()}-{secrets.token_hex(4)}"
    group = Group(tuple(_folders(name, asked)), "")
    try:
        for folder in group.folders:
            folder.mkdir()
        said = [_limit(group.folders, name, most) for name, most in asked.items()]
    except OSError:
        group.remove()
        raise
    return Group(group.folders, ", ".join(said))


def sweep() -> None:
    """Removes the empty groups of processes that were ended before they could."""
    for parent in {folder.parent for folder in _folders("any", dict.fromkeys(_CONTROLLERS, 0))}:
        for folder in parent.glob(f"{PREFIX}*"):
            owner = folder.name.removeprefix(PREFIX).partition("-")[0]
            if not Path("/proc", owner).exists():
                with suppress(OSError):  # the kernel removes empty ones only
                    folder.rmdir()


def _folders(name: str, asked: Mapping[str, int]) -> Iterator[Path]:
    """Where a group of the name would lie: in each hierarchy that has one of the controllers."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    own = {
        names: Path(path.lstrip("/")) for _, names, path in (line.split(":", 2) for line in lines)
    }
    if _is_unified():
        yield ROOT / own.get("", Path()) / name
        return
    for controller in asked:
        if controller in own:
            yield ROOT / controller / own[controller] / name


def _limit(folders: tuple[Path, ...], controller: str, most: int) -> str:
    """Limits what a controller counts; what is limited, in words."""
    file = "memory.max" if controller == "memory" else "pids.max"
    if _is_unified():
        folder = folders[0]
        enabled = folder.parent / "cgroup.subtree_control"
        if controller not in enabled.read_text().split():
            enabled.write_text(f"+{controller}")
    else:
        found = [f for f in folders if f.is_relative_to(ROOT / controller)]
        if not found:
            raise OSError(0, f"there is no controller `{controller}`")
        folder = found[0]
        file = "memory.limit_in_bytes" if controller == "memory" else file
    (folder / file).write_text(str(most))
    if controller == "memory" and (folder / "memory.swap.max").exists():
        (folder / "memory.swap.max").write_text("0")
    return f"{'memory' if controller == 'memory' else 'processes'} {most}"


def _is_unified() -> bool:
    """Whether there is one hierarchy for all controllers."""
    return (ROOT / "cgroup.controllers").exists()


def _members(folder: Path) -> list[int]:
    """The processes of a group that this process may see; the kernel calls others 0."""
    try:
        words = (folder / "cgroup.procs").read_text().split()
    except OSError:
        return []
    return [int(word) for word in words if word != "0"]


def _most() -> int:
    """Bytes of memory that an evaluation may have on this machine."""
    return int(SHARE * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
