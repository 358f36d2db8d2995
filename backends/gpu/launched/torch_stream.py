"""Launches in torch's stream: what `backend.py` needs of torch."""

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
    """Why the GPU here is not the target's; empty where it is."""
    if not getattr(torch.version, vendor):
        return f"torch here is built for no GPU of {vendor}"
    return looked_in_child(arch, names)


def ready() -> None:
    """Makes the context that code is loaded into."""
    open_device()
    torch.cuda.init()
    torch.cuda.current_stream()


def stream() -> int:
    """The handle of torch's stream."""
    return torch.cuda.current_stream().cuda_stream
