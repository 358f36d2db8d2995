"""The device files of GPUs: whether there is one, and exclusive turns on it. Needs no torch."""

from __future__ import annotations

import os
from pathlib import Path

from backends.turns import Turns

DEVICE = "cuda"  # what torch calls a GPU of any vendor
NODES = ("nvidia[0-9]*", "kfd", "dxg")  # below /dev: those that a computer with a GPU has
# Below /dev: device files that a process opens to use a GPU.
OPENED = ("nvidia*", "nvidia-caps/*", "kfd", "dxg", "dri/*", "shm")
# Variables that say which GPUs a process may use
VISIBLE = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
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


def device_turns(folder: Path = Path("/dev")) -> Turns:
    """Turns of all processes on the GPU that this one sees first; none where there is no GPU."""
    found = chips(folder)
    if not found:
        return Turns()
    number = min(first_seen(), len(found) - 1)
    # A second file for each device, which all can read and nobody else locks: those beside this one
    doors = sorted(Path(__file__).parent.glob("*.py"))
    return Turns(found[number], str(doors[number % len(doors)]))


def first_seen() -> int:
    """The number of the first GPU that this process may use, as far as variables say it."""
    for name in VISIBLE:
        first = os.environ.get(name, "").partition(",")[0].strip()
        if first.isdigit():
            return int(first)
    return 0


def _found(patterns: tuple[str, ...], folder: Path) -> list[str]:
    return sorted(str(node) for pattern in patterns for node in folder.glob(pattern))
