"""Launches in torch's stream: the part of `backend.py` that needs torch."""

from __future__ import annotations

import torch

from backends.gpu.device.running import (
    bars,
    faults,
    glance,
    looked_in_child,
    open_device,
    run,
    time,
)

__all__ = ["bars", "faults", "glance", "lacks", "ready", "run", "stream", "time"]


def lacks(vendor: str, arch: int | str, names: tuple[str, ...]) -> str:
    """Why the GPU of this computer is not the target's; empty where it is."""
    if not getattr(torch.version, vendor):
        return f"torch here is built for no GPU of {vendor}"
    return looked_in_child(arch, names)


def ready() -> None:
    """Creates the context into which code is loaded."""
    open_device()
    torch.cuda.init()
    torch.cuda.current_stream()


def stream() -> int:
    """The handle of torch's current stream."""
    return torch.cuda.current_stream().cuda_stream
