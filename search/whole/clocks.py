"""Times of a network as a whole: a call end to end, as a device graph, and each of its kernels in it.

Inputs are drawn by dtype: no candidate is judged by them, and no time of a kernel that they decide
is a kernel's own. Where nothing is measured here there are no such times.
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

SEED = 5  # of the drawn inputs
WHOLE_SECONDS, KERNEL_SECONDS = 0.1, 0.03  # of measured calls, about
HOST_RUNS = (5, 200)  # least and most calls by the host's clock
WARM_UP = 2

Call = Callable[[], Any]


def whole_times(linked: Linked, kernels: bool = True) -> WholeTimes | None:
    """The times of a linked network on this machine; None where its times are not measured here, and
    where it pauses for calls that no kernel makes. kernels: whether each is timed, too.

    Raises BackendError where the clocks disagree, as `backends/gpu/device/timing.py` has it.
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
    """Gives back the memory of the device that is no longer used: others need it meanwhile."""
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()


def launches(program: Program) -> dict[Spec, Call]:
    """By kernel, its first launch in a program whose tensors are all bound."""
    found: dict[Spec, Call] = {}
    for step, call in zip(program.network.steps, program.calls, strict=True):
        if step.spec not in found and isinstance(call, Launch):
            found[step.spec] = partial(call.launch, *call.arguments)
    return found


def drawn(linked: Linked) -> dict[str, torch.Tensor]:
    """Tensors for all inputs of a network, those that constants fill among them."""
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
        # Neither zero nor negative, so that nothing becomes infinite or no number
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
    """Times as those of candidates are measured: cold, between events of the device."""

    def __init__(self) -> None:
        self.device = CudaDevice()

    def __call__(self, call: Call, seconds: float) -> float:
        return measure(lambda _: call(), [()], self.device, seconds).us


def _on_host(call: Call, seconds: float) -> float:
    """The median by the host's clock."""
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
