"""The device files of GPUs: whether there is one, and exclusive turns on it. Needs no torch."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DEVICE = "cuda"  # what torch calls a GPU of any vendor
NODES = ("nvidia[0-9]*", "kfd", "dxg")  # below /dev: those that a computer with a GPU has
# Below /dev: device files that a process opens to use a GPU.
OPENED = ("nvidia*", "nvidia-caps/*", "kfd", "dxg", "dri/*", "shm")
MODULES = ("nvidia", "amdgpu")  # below /sys/module: drivers of GPUs


def chips(folder: Path = Path("/dev")) -> list[str]:
    """The device files that stand for GPUs; none where there is no GPU."""
    return _found(NODES, folder)


def nodes(folder: Path = Path("/dev")) -> list[str]:
    """The device files that a process opens to use a GPU."""
    return _found(OPENED, folder)


def driver(folder: Path = Path("/sys/module")) -> str:
    """The driver of GPUs that is loaded, with its version; empty where none says its version."""
    for name in MODULES:
        try:
            return f"{name} {(folder / name / 'version').read_text().strip()}"
        except OSError:
            continue
    return ""


@contextmanager
def alone(folder: Path = Path("/dev")) -> Iterator[None]:
    """A context that locks the GPU's device file, so that processes that time take turns."""
    found = chips(folder)
    if not found:
        yield
        return
    held = os.open(found[0], os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)


def _found(patterns: tuple[str, ...], folder: Path) -> list[str]:
    return sorted(str(node) for pattern in patterns for node in folder.glob(pattern))
