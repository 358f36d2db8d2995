"""Launchers: how a program runs a kernel, whatever its backend can take.

A backend whose sources take torch tensors as they are says so by two methods more than the
contract asks for (`TakesTensors`). One whose builds do on a device says so by `Enqueues`, and by
`place`; one whose builds are libraries for this process, by `LoadsHere`. For any other, and where
there is no device, tensors go through arrays.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeGuard

import numpy as np
import torch

from backends.backend import Backend, Built, Enqueues, LoadsHere
from backends.parameters import parameters
from backends.program.loader import LibraryCall, launch_function
from backends.program.tensors import TORCH
from ir.machine import Machine
from ir.nest.nest import LoopNest, Parameter
from ir.reference.rounding import HELD_AS
from ir.sizes import free_sizes, shape

CPU = "cpu"
LaunchFunction = Callable[..., None]  # the tensors of a kernel, in the order of its parameters


class TakesTensors(Protocol):
    """What a backend has beside the contract, where its kernels run on torch tensors."""

    def place(self, machine: Machine) -> str:
        """Torch's name of the device on which tensors for a machine's kernels lie here."""

    def launcher(
        self, file: Path, tensors: tuple[Parameter, ...], machine: Machine
    ) -> LaunchFunction:
        """What runs a source (as it was built, where its build lies beside it) on contiguous
        tensors at that place, in the order of `tensors`: inputs, workspace, outputs. Shapes are numbers, the
        same in all calls. It returns when the kernel has run, or stands in the device's queue; BackendError
        where it fails."""


@dataclass(frozen=True, slots=True)
class Library:
    """A library, and the calls of it that are a launch."""

    file: Path
    calls: tuple[LibraryCall, ...]


@dataclass(frozen=True, slots=True)
class Launcher:
    """A kernel that can be run."""

    tensors: tuple[Parameter, ...]  # all that `launch` takes, in order
    launch: LaunchFunction
    library: Library | None = None  # what it calls, where that is a library of this process


def takes_tensors(backend: Backend) -> TypeGuard[TakesTensors]:
    """Whether a backend's sources run on torch tensors as they are."""
    return hasattr(backend, "launcher")


def place(backend: Backend, machine: Machine) -> str:
    """Torch's name of the device for a machine's kernels: "cpu" where they take arrays."""
    return backend.place(machine) if hasattr(backend, "place") else CPU


def launcher(backend: Backend, built: Built, nest: LoopNest, machine: Machine) -> Launcher:
    """The launcher of a built kernel."""
    tensors = parameters(nest)
    if takes_tensors(backend):
        return Launcher(tensors, backend.launcher(built.file, tensors, machine))
    if isinstance(backend, Enqueues) and place(backend, machine) != CPU:
        return Launcher(tensors, backend.enqueued(built, nest, machine, {}))
    if isinstance(backend, LoadsHere):
        library = Library(built.file, backend.library_calls(built, nest, {}))
        return Launcher(tensors, _in_memory(library), library)
    ends = tuple(p for p in tensors if p.role != "workspace")
    return Launcher(ends, _through_arrays(backend, built, nest, machine))


def _in_memory(library: Library) -> LaunchFunction:
    launch = launch_function(library.file, library.calls, len(os.sched_getaffinity(0)))
    return lambda *tensors: launch([t.data_ptr() for t in tensors])


def _through_arrays(
    backend: Backend, built: Built, nest: LoopNest, machine: Machine
) -> LaunchFunction:
    spec, count = nest.spec, len(nest.spec.inputs)
    assert not free_sizes(spec), f"`{spec.name}` has open sizes, which arrays do not tell"

    def launch(*tensors: torch.Tensor) -> None:
        given = {t.name: array(x, t.dtype) for t, x in zip(spec.inputs, tensors, strict=False)}
        made = backend.run(built, nest, machine, {}, given)
        for t, x in zip(spec.outputs, tensors[count:], strict=True):
            found = torch.from_numpy(np.ascontiguousarray(made[t.name]))
            x[t.window].copy_(found.reshape(shape(t, {})).to(TORCH[t.dtype]))

    return launch


def array(tensor: torch.Tensor, dtype: str) -> np.ndarray:
    """A tensor as backends take it; what numpy lacks as f32 of its values."""
    held = HELD_AS[dtype]
    there = tensor.detach().cpu()
    wide = there.float() if held == np.float32 else there
    return np.ascontiguousarray(wide.numpy(), held).reshape(tensor.shape)
