"""Control groups: total limits on memory and processes for everything that one evaluation starts.

A system has one hierarchy of groups (version 2) or one for each controller (version 1); see
https://docs.kernel.org/admin-guide/cgroup-v2.html. A new group is below that of this process.
Creating it needs root, or a delegated group.
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
PATIENCE = 2.0  # seconds that processes have to end when a group is removed
SHARE = 0.75  # largest share of the machine's memory for one evaluation
_CONTROLLERS = ("memory", "pids")


@dataclass(frozen=True, slots=True)
class Group:
    """A group of processes with common limits."""

    folders: tuple[Path, ...]  # one in each hierarchy
    held: str  # a description of the limits

    def enter(self) -> str:
        """Moves this process into the group, with everything that it starts later. Returns the
        limits in words."""
        for folder in self.folders:
            (folder / "cgroup.procs").write_text("0")
        return self.held

    def out_of_memory(self) -> bool:
        """Whether the kernel killed a process because the group was out of memory."""
        for file in ("memory.events", "memory.oom_control"):
            for folder in self.folders:
                with suppress(OSError):
                    words = (folder / file).read_text().split()
                    if int(dict(zip(words[::2], words[1::2], strict=False)).get("oom_kill", 0)):
                        return True
        return False

    def remove(self) -> None:
        """Kills the remaining processes of the group, then removes it."""
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
    """A new group. Raises OSError with the reason if this process cannot create one.

    memory: bytes for all its processes, including files in memory. processes: includes threads.
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
    """Removes empty groups of processes that were killed before they could remove them."""
    for parent in {folder.parent for folder in _folders("any", dict.fromkeys(_CONTROLLERS, 0))}:
        for folder in parent.glob(f"{PREFIX}*"):
            owner = folder.name.removeprefix(PREFIX).partition("-")[0]
            if not Path("/proc", owner).exists():
                with suppress(OSError):  # the kernel refuses to remove other groups
                    folder.rmdir()


def _folders(name: str, asked: Mapping[str, int]) -> Iterator[Path]:
    """The folders of a group: one in each hierarchy that has one of the controllers."""
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
    """Sets the limit of a controller. Returns it in words."""
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
    """Whether all controllers share one hierarchy."""
    return (ROOT / "cgroup.controllers").exists()


def _members(folder: Path) -> list[int]:
    """The visible processes of a group. The kernel lists the others as 0."""
    try:
        words = (folder / "cgroup.procs").read_text().split()
    except OSError:
        return []
    return [int(word) for word in words if word != "0"]


def _most() -> int:
    """The largest memory limit of an evaluation on this machine, in bytes."""
    return int(SHARE * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
