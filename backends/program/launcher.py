"""Launchers: how a program runs a kernel, for each kind of backend.

A backend whose sources take torch tensors directly has two methods beyond the contract
(`TakesTensors`). One whose builds do so on a device has `Enqueues` and `place`. One whose builds
are libraries for this process has `LoadsHere`. For any other backend, and without a device, tensors
are converted to arrays.
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
    """What a backend has beyond the contract if its kernels run on torch tensors."""

    def place(self, machine: Machine) -> str:
        """Torch's name of the device that holds the tensors of a machine's kernels."""

    def launcher(
        self, file: Path, tensors: tuple[Parameter, ...], machine: Machine
    ) -> LaunchFunction:
        """A function that runs a source (or its build, if one is next to it) on contiguous tensors
        on that device, in the order of `tensors`: inputs, workspace, outputs. Shapes are numbers,
        the same in all calls. The function returns once the kernel has run or is in the device's
        queue. BackendError if it fails."""


@dataclass(frozen=True, slots=True)
class Library:
    """A shared library, and its calls that make up one launch."""

    file: Path
    calls: tuple[LibraryCall, ...]


@dataclass(frozen=True, slots=True)
class Launcher:
    """A kernel that can be run."""

    tensors: tuple[Parameter, ...]  # all that `launch` takes, in order
    launch: LaunchFunction
    library: Library | None = None  # the library that `launch` calls, if it is one of this process


def takes_tensors(backend: Backend) -> TypeGuard[TakesTensors]:
    """Whether a backend's sources run on torch tensors directly."""
    return hasattr(backend, "launcher")


def place(backend: Backend, machine: Machine) -> str:
    """Torch's name of the device for a machine's kernels: "cpu" if they take arrays."""
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
    """A tensor as an array that backends take. Dtypes that numpy lacks become f32."""
    held = HELD_AS[dtype]
    there = tensor.detach().cpu()
    wide = there.float() if held == np.float32 else there
    return np.ascontiguousarray(wide.numpy(), held).reshape(tensor.shape)
