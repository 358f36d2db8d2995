"""Interpreted launches on CPU tensors: a child process interprets the source, and its results are copied back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from backends.gpu.child import in_child
from backends.gpu.device.tensors import poison
from backends.triton.interpret.interpreter import SECONDS, start, warm
from ir.machine import Machine
from ir.nest.nest import Parameter


def launcher(file: Path, tensors: tuple[Parameter, ...], machine: Machine) -> Callable[..., None]:
    """The function that runs a source's `launch` on tensors. Outputs that it writes as a whole are
    poisoned first, in memory separate from its inputs. Raises BackendError("check") for a fault of
    the kernel."""

    def launch(*given: torch.Tensor) -> None:
        named = list(zip(tensors, given, strict=True))
        read = {t.data_ptr() for p, t in named if p.role == "input"}
        pairs = [
            (p, torch.empty_like(t) if t.data_ptr() in read and _is_whole(p) else t)
            for p, t in named
        ]

        def work() -> list[np.ndarray]:
            torch.set_num_threads(1)  # torch's worker threads did not survive the fork
            for p, tensor in pairs:
                if _is_whole(p):
                    poison(tensor)
            start(file, pairs, machine)
            return [_bytes(t).numpy() for p, t in pairs if p.role == "output"]

        warm()
        made = in_child(work, SECONDS, "check", file.parent)
        outputs = [t for p, t in named if p.role == "output"]
        for tensor, found in zip(outputs, made, strict=True):
            _bytes(tensor).copy_(torch.from_numpy(found.copy()))

    return launch


def _is_whole(p: Parameter) -> bool:
    """Whether a launch writes all of a tensor. The surroundings of a part belong to others, and may be its input."""
    return p.role != "input" and not p.own


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.reshape(-1).view(torch.uint8)
