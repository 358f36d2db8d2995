"""Device files of GPUs: whether there is a GPU, and exclusive use of it. Needs no torch."""

from __future__ import annotations

import os
from pathlib import Path

from backends.turns import Turns

DEVICE = "cuda"  # what torch calls a GPU of any vendor
NODES = ("nvidia[0-9]*", "kfd", "dxg")  # below /dev: files that exist where there is a GPU
# Below /dev: device files that a process opens to use a GPU.
OPENED = ("nvidia*", "nvidia-caps/*", "kfd", "dxg", "dri/*", "shm")
# Variables that say which GPUs a process may use
VISIBLE = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
MODULES = ("nvidia", "amdgpu")  # below /sys/module: drivers of GPUs


def chips(folder: Path = Path("/dev")) -> list[str]:
    """The device files of GPUs; empty where there is no GPU."""
    return _found(NODES, folder)


def nodes(folder: Path = Path("/dev")) -> list[str]:
    """The device files that a process opens to use a GPU."""
    return _found(OPENED, folder)


def driver(folder: Path = Path("/sys/module")) -> str:
    """The loaded GPU driver with its version; empty where none states its version."""
    for name in MODULES:
        try:
            return f"{name} {(folder / name / 'version').read_text().strip()}"
        except OSError:
            continue
    return ""


def device_turns(folder: Path = Path("/dev")) -> Turns:
    """The lock of all processes on the first GPU that this one sees; a no-op lock where there is no GPU."""
    found = chips(folder)
    if not found:
        return Turns()
    number = min(first_seen(), len(found) - 1)
    # A second lock file for each device, which all can read and nobody else locks: a module of this folder
    doors = sorted(Path(__file__).parent.glob("*.py"))
    return Turns(found[number], str(doors[number % len(doors)]))


def first_seen() -> int:
    """The number of the first GPU that this process may use, according to environment variables."""
    for name in VISIBLE:
        first = os.environ.get(name, "").partition(",")[0].strip()
        if first.isdigit():
            return int(first)
    return 0


def _found(patterns: tuple[str, ...], folder: Path) -> list[str]:
    return sorted(str(node) for pattern in patterns for node in folder.glob(pattern))
