"""Times of a whole network: a call, the same as a device graph, and each kernel in it.

Inputs are drawn by dtype only: correctness is not checked here, and no kernel's own time depends on
its inputs' values. There are no such times if this machine measures none.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import numpy as np
import torch

from backends.compiled import constant_inputs
from backends.gpu.device.gpu import CudaDevice
from backends.gpu.device.nodes import device_turns
from backends.gpu.device.timing import measure
from backends.program.graph import ProgramGraph
from backends.program.linked import Linked
from backends.program.program import Launch, Program
from backends.program.tensors import TORCH
from ir.network import Buffer, Network
from ir.reference.inputs import random_inputs, uses
from ir.spec import FLOATS, Spec
from search.evaluator.turns import machine_turns
from search.whole.times import MEASURED, WholeTimes

SEED = 5  # seed of the inputs
WHOLE_SECONDS, KERNEL_SECONDS = 0.1, 0.03  # approximate seconds of measured calls
HOST_RUNS = (5, 200)  # least and largest number of calls with the host's clock
WARM_UP = 2

Call = Callable[[], Any]


def whole_times(linked: Linked, kernels: bool = True) -> WholeTimes | None:
    """The times of a linked network on this machine.

    None if times are not measured here, or if the network pauses for calls that no kernel computes.
    kernels: whether each kernel is timed too. Raises BackendError if the clocks disagree; see
    `backends/gpu/device/timing.py`.
    """
    said = linked.backend.available(linked.machine)
    if said["time_kind"] != MEASURED or linked.network.pauses:
        return None
    turns = machine_turns() if linked.place == "cpu" else device_turns()
    with torch.no_grad(), turns.alone():
        given = drawn(linked)
        program = linked.program(given, reuse=True)
        clock = _on_host if linked.place == "cpu" else _OnDevice()
        us = clock(lambda: program({}), WHOLE_SECONDS)
        graph_us = None
        if linked.place != "cpu":
            graph = ProgramGraph(program, {})
            graph_us = clock(lambda: graph({}), WHOLE_SECONDS)
        times = {}
        for spec, call in launches(program).items() if kernels else ():
            times[spec.name] = clock(call, KERNEL_SECONDS)
        return WholeTimes(us, graph_us, times)


def let_go() -> None:
    """Releases unused device memory for other processes."""
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()


def launches(program: Program) -> dict[Spec, Call]:
    """The first launch of each kernel in a program whose tensors are all bound."""
    found: dict[Spec, Call] = {}
    for step, call in zip(program.network.steps, program.calls, strict=True):
        if step.spec not in found and isinstance(call, Launch):
            found[step.spec] = partial(call.launch, *call.arguments)
    return found


def drawn(linked: Linked) -> dict[str, torch.Tensor]:
    """Tensors for all inputs of a network, including those that constants fill."""
    generator = np.random.default_rng(SEED)
    found: dict[str, torch.Tensor] = {}
    before = linked.constants
    filled = constant_inputs(linked.network, before) if before else []
    for network in (n for n in (linked.network, before) if n is not None):
        for buffer in network.inputs:
            if buffer.name not in found and buffer.name not in filled:
                found[buffer.name] = _tensor(buffer, network, linked.place, generator)
    if (prepares := linked.prepares(found)) is not None:
        found |= dict(zip(filled, prepares({}), strict=True))
    return found


def _tensor(
    buffer: Buffer, network: Network, place: str, generator: np.random.Generator
) -> torch.Tensor:
    dtype = TORCH[buffer.dtype]
    if buffer.dtype in FLOATS:
        # Positive values, so that no result is infinite or NaN
        return torch.empty(buffer.shape, device=place).uniform_(0.5, 1.5).to(dtype)
    if dtype == torch.bool:
        return torch.ones(buffer.shape, dtype=dtype, device=place)
    low, high = 0, 2
    for step in network.steps:
        names = [t.name for t, b in zip(step.spec.inputs, step.inputs) if b == buffer.name]
        use = uses(step.spec, {})
        for name in names:
            if name in (*use.bounds, *use.ends.values(), *use.borders):
                array = random_inputs(step.spec, {}, generator)[name]
                made = torch.from_numpy(np.ascontiguousarray(array)).reshape(buffer.shape)
                return made.to(place, dtype)
            if name in use.within:
                low, high = use.within[name]
    return torch.randint(low, max(high, low + 1), buffer.shape, dtype=dtype, device=place)


class _OnDevice:
    """Times with the method for candidates: cold caches, and device events."""

    def __init__(self) -> None:
        self.device = CudaDevice()

    def __call__(self, call: Call, seconds: float) -> float:
        return measure(lambda _: call(), [()], self.device, seconds).us


def _on_host(call: Call, seconds: float) -> float:
    """The median in microseconds by the host's clock."""
    for _ in range(WARM_UP):
        call()
    found: list[float] = []
    least, most = HOST_RUNS
    end = time.perf_counter() + seconds
    while len(found) < least or (time.perf_counter() < end and len(found) < most):
        before = time.perf_counter()
        call()
        found.append(time.perf_counter() - before)
    return 1e6 * median(found)
