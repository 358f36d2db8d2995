"""Runs and times kernels on a GPU, whatever launches them.

Nothing here may touch the GPU in a process that forks afterwards. Functions that touch it are
called in the process that was forked for one candidate.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import compress
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch

from backends.backend import Arrays, BackendError, MachineFault, Sizes, Timing
from backends.gpu.child import fault, in_child
from backends.gpu.device import timing
from backends.gpu.device.arena import Arena
from backends.gpu.device.formulas import HeldTensor
from backends.gpu.device.gpu import CudaDevice, lack
from backends.gpu.device.nodes import device_turns
from backends.gpu.device.nvml import clocks
from backends.gpu.device.tensors import array, output, poison, same_bits
from backends.parameters import parameters
from backends.timeline import Bar
from ir.nest.nest import LoopNest
from ir.reference.formulas import Formulas

Launch = Callable[..., Any]  # takes the nest's global tensors in order
SECONDS = 0.1  # of measured calls: all other processes wait meanwhile
MOST_RUNS = 100  # of these; the median of so many cold calls is within a percent
LOOK_SECONDS = 60.0  # limit for the child that looks for the GPU
MOST_SETS = 4  # sets of tensors between which timed calls rotate
SETS_BYTES = 8 << 30  # of all sets, above which there are only two
FREE_SHARE = 0.5  # share of free memory that the sets may take
LEAST_FREE = 0.5  # share of all memory: if less is free, cached memory is released for others
SHIFT = 997  # elements by which inputs are rotated from set to set


def looked_in_child(arch: int | str, names: tuple[str, ...]) -> str:
    """Why the GPU cannot be used, determined in a child process, so that this process can still
    fork others that open it.

    A process that has used the CUDA driver (`torch.export` does) cannot have such children, so it
    opens the GPU itself.
    """
    if torch.cuda.is_initialized():
        return lack(arch, names)
    with tempfile.TemporaryDirectory() as folder:
        why = in_child(lambda: _look(arch, names), LOOK_SECONDS, "check", Path(folder))
    return lack(arch, names) if why is None else why


def _look(arch: int | str, names: tuple[str, ...]) -> str | None:
    """`lack`, or None in a child of a process that has used the driver."""
    return None if torch.cuda._is_in_bad_fork() else lack(arch, names)


def run(launch: Launch, nest: LoopNest, sizes: Sizes, inputs: Arrays) -> dict[str, np.ndarray]:
    """The outputs in the dtypes of the spec; their memory is poisoned before the run. Where
    formulas define the inputs, outputs stay on the device (`Held`)."""
    stays = isinstance(inputs, Formulas)
    with faults("check"):
        open_device()
        arena = Arena(nest, sizes, inputs)
        with device_turns().together():
            buffer, tensors = arena.placed()
            launch(*tensors)
            torch.cuda.synchronize()
            taken = arena.taken(buffer)
            del buffer, tensors
            if stays:
                _give_back()
        found = taken.outputs()
        return {
            t.name: _result(output(t, found[t.name]), t.dtype, stays) for t in nest.spec.outputs
        }


def _result(tensor: torch.Tensor, dtype: str, stays: bool) -> np.ndarray:
    """An output as an array. stays: as a `Held` value instead."""
    return cast(np.ndarray, HeldTensor(tensor, dtype)) if stays else array(tensor)


def glance(launch: Launch, nest: LoopNest, sizes: Sizes, inputs: Arrays, enough_us: float) -> float:
    """The approximate time of one call in microseconds, from a few calls timed as in `time`, but
    while others may use the device. Results are not compared. enough_us: a slower call is not timed
    more than three times."""
    with faults("time"):
        open_device()
        arena = Arena(nest, sizes, inputs)
        with device_turns().together():
            _, tensors = arena.placed()
            launch(*tensors)  # loads the code
            torch.cuda.synchronize()
            us = timing.glance(
                lambda each: launch(*each), tensors, CudaDevice(), enough_us, _clear_of(nest)
            )
            del tensors, _
            _give_back()
        return us


def time(launch: Launch, nest: LoopNest, sizes: Sizes, inputs: Arrays) -> Timing:
    """The median time of one call by device events, for all launches of the kernel together. No
    other process uses the device while calls are timed."""
    clear, turns = _clear_of(nest), device_turns()
    with faults("time"):
        open_device()
        arena = Arena(nest, sizes, inputs)
        with turns.together():
            rotated = _sets(nest, arena)
            launch(*rotated[0])  # loads the code
            torch.cuda.synchronize()
        with turns.alone():
            gpu = CudaDevice()
            times = timing.measure(
                lambda tensors: launch(*tensors), rotated, gpu, SECONDS, clear, MOST_RUNS
            )
        figures = times.figures() | clocks(gpu.uuid)
        with turns.together():
            stays = isinstance(inputs, Formulas)
            found = _outputs(nest, rotated.pop(0))
            if stays:  # their set may then be freed
                found = {name: tensor.clone() for name, tensor in found.items()}
            outputs = {t.name: _result(found[t.name], t.dtype, stays) for t in nest.spec.outputs}
            del found
            while rotated:
                _require_same(launch, nest, rotated.pop(), clear)
            del gpu
            _give_back()
    return Timing(times.us, "measured", figures, outputs=outputs)


def _give_back() -> None:
    """Releases cached memory of this process where others may need it."""
    free, whole = torch.cuda.mem_get_info()
    if free < LEAST_FREE * whole:
        torch.cuda.empty_cache()


def open_device() -> None:
    """Opens the device in this process. This takes long, so it uses a lock of its own, which delays
    timing processes no longer than necessary."""
    if not torch.cuda.is_initialized():
        with device_turns().together():
            torch.cuda.synchronize()


def _clear_of(nest: LoopNest) -> Callable[[Sequence[torch.Tensor]], None]:
    """The function that poisons everything that a kernel writes."""
    written = [p.role != "input" for p in parameters(nest)]

    def clear(tensors: Sequence[torch.Tensor]) -> None:
        for tensor in compress(tensors, written):
            poison(tensor)

    return clear


def _outputs(nest: LoopNest, tensors: Sequence[torch.Tensor]) -> dict[str, torch.Tensor]:
    """The outputs among all tensors of a launch."""
    held = dict(zip((p.name for p in parameters(nest)), tensors, strict=True))
    return {t.name: output(t, held[t.name]) for t in nest.spec.outputs}


def _require_same(
    launch: Launch,
    nest: LoopNest,
    tensors: Sequence[torch.Tensor],
    clear: Callable[[Sequence[torch.Tensor]], None],
) -> None:
    """Requires that a timed call gave the same bits as a call on copies of its inputs, for deterministic kernels."""
    if nest.unordered:
        return
    others = [t.clone() for t in tensors]
    clear(others)
    launch(*others)
    torch.cuda.synchronize()
    again = _outputs(nest, others)
    for name, one in _outputs(nest, tensors).items():
        if not same_bits(one, again[name]):
            raise BackendError(
                "check",
                f"a timed call gave another output `{name}` than a later one on the same inputs",
            )


def bars(
    ready: Sequence[tuple[str, Launch]],
    nest: LoopNest,
    sizes: Sizes,
    inputs: Arrays,
    host_us: float,
) -> list[Bar]:
    """The time of each launch of one call. ready: the function that enqueues each launch, with its
    name. host_us: host time of issuing a call."""
    with device_turns().alone():
        tensors, gpu = sets(nest, sizes, inputs)[0], CudaDevice()
        gpu.spin(3 * host_us + 100)
        gpu.flush()
        marks = []
        for name, launch in ready:
            start = gpu.mark()
            launch(*tensors)
            marks.append((name, start, gpu.mark()))
        gpu.wait()
        began = marks[0][1] if marks else None
        return [Bar(n, gpu.us_between(a, b), gpu.us_between(began, a)) for n, a, b in marks]


def sets(nest: LoopNest, sizes: Sizes, inputs: Arrays) -> list[list[torch.Tensor]]:
    """Several sets of all tensors: floats are rotated, which keeps their range; integers are copied."""
    return _sets(nest, Arena(nest, sizes, inputs))


def _sets(nest: LoopNest, arena: Arena) -> list[list[torch.Tensor]]:
    """`sets` for an arena."""
    _, first = arena.placed()
    are_inputs = [p.role == "input" for p in parameters(nest)]
    bytes_of_set = max(1, sum(t.nbytes for t in first))
    room = FREE_SHARE * torch.cuda.mem_get_info()[0]
    count = int(min(MOST_SETS, 1 + room // bytes_of_set, max(2, SETS_BYTES // bytes_of_set)))
    return [first] + [
        [shifted(t, n) if i else t.clone() for t, i in zip(first, are_inputs, strict=True)]
        for n in range(1, count)
    ]


def shifted(tensor: torch.Tensor, turn: int) -> torch.Tensor:
    if not tensor.is_floating_point():
        return tensor.clone()
    flat = tensor.reshape(-1)
    if flat.element_size() == 1:  # torch has no operation but copies for 8-bit floats
        return (
            torch.roll(flat.view(torch.uint8), turn * SHIFT).view(tensor.dtype).view(tensor.shape)
        )
    return torch.roll(flat, turn * SHIFT).view(tensor.shape)


@contextmanager
def faults(stage: str) -> Iterator[None]:
    """A context that converts any exception of candidate code into a BackendError(stage)."""
    try:
        yield
    except BackendError:
        raise
    except torch.OutOfMemoryError as error:  # others use the device, too
        raise MachineFault(stage, fault(error)) from error
    except Exception as error:
        raise BackendError(stage, fault(error)) from error
