"""The common part of backends whose code objects a GPU driver launches. On the target's GPU kernels
run and are timed; elsewhere each backend checks them in its own way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import numpy as np

from backends.backend import Arrays, BackendError, Built, Sizes, Timing
from backends.gpu.device.nodes import DEVICE, chips, driver, nodes
from backends.gpu.model.model import modelled, modelled_build
from backends.gpu.rules import Rules
from backends.gpu.source.launches import Call
from backends.timeline import Bar, facts_of, write_timeline
from ir.machine import Machine
from ir.nest.nest import LoopNest
from machines.gpu.facts import device_names


class Driver(Protocol):
    """A vendor's GPU driver."""

    def launcher(
        self, image: Path, calls: tuple[Call, ...], stream: Callable[[], int]
    ) -> Callable[..., None]:
        """The function that enqueues calls of a code object."""


class DeviceBackend:
    """A backend that launches kernels through a driver in torch's stream."""

    rules: Rules
    driver: Driver
    correct_by: str  # how a kernel is checked where there is no such GPU

    # -- of each language ---------------------------------------------------------------------------

    def present(self, machine: Machine) -> str:
        """Why the machine's GPU is not in this computer; empty where it is."""
        raise NotImplementedError

    def compiler(self) -> tuple[str, str]:
        """The compiler's name and version; or empty, and why it is missing."""
        raise NotImplementedError

    def calls(
        self, built: Built, nest: LoopNest, machine: Machine, sizes: Sizes
    ) -> tuple[Path, tuple[Call, ...]]:
        """The code object for given sizes, and its launches."""
        raise NotImplementedError

    def elsewhere(
        self, built: Built, nest: LoopNest, machine: Machine, sizes: Sizes, inputs: Arrays
    ) -> dict[str, np.ndarray]:
        """The outputs on a computer without the GPU."""
        raise NotImplementedError

    # -- of all -------------------------------------------------------------------------------------

    def run(
        self, built: Built, nest: LoopNest, machine: Machine, sizes: Sizes, inputs: Arrays
    ) -> dict[str, np.ndarray]:
        """The outputs, in the dtypes of the spec."""
        if self.present(machine):
            return self.elsewhere(built, nest, machine, sizes, inputs)
        on = _torch()
        with on.faults("check"):
            launch = self.enqueued(built, nest, machine, sizes)
        return on.run(launch, nest, sizes, inputs)

    def time(
        self, built: Built, nest: LoopNest, machine: Machine, sizes: Sizes, inputs: Arrays
    ) -> Timing:
        """The time, measured on the target's GPU, else modelled. A build that spills is not modelled."""
        if self.present(machine):
            return modelled_build(built, nest, machine, self.rules, sizes)
        on = _torch()
        with on.faults("time"):
            launch = self.enqueued(built, nest, machine, sizes)
        return on.time(launch, nest, sizes, inputs)

    def open(self, machine: Machine) -> None:
        """Opens the target's GPU, if it is in this computer."""
        if not self.present(machine):
            _torch().open_device()

    def leaves_inputs(self, machine: Machine) -> bool:
        """Whether kernels run on the target's GPU."""
        return not self.present(machine)

    def glance(
        self,
        built: Built,
        nest: LoopNest,
        machine: Machine,
        sizes: Sizes,
        inputs: Arrays,
        enough_us: float,
    ) -> float:
        """The approximate time of a call on the target's GPU, in microseconds."""
        on = _torch()
        with on.faults("time"):
            launch = self.enqueued(built, nest, machine, sizes)
        return on.glance(launch, nest, sizes, inputs, enough_us)

    def profile(
        self,
        built: Built,
        nest: LoopNest,
        machine: Machine,
        sizes: Sizes,
        inputs: Arrays,
        trace: Path,
    ) -> Timing:
        """The same as `time`, with a timeline of the launches."""
        timing = self.time(built, nest, machine, sizes, inputs)
        if self.present(machine):
            bars = [Bar(n.name, timing.figures[f"{n.name}.us"]) for n in nest.launches]
        else:
            on = _torch()
            with on.faults("time"):
                image, made = self.calls(built, nest, machine, sizes)
                ready = [(c.name, self.driver.launcher(image, (c,), on.stream)) for c in made]
                bars = on.bars(ready, nest, sizes, inputs, timing.figures["host_us"])
        write_timeline(trace, (replace(b, facts=facts_of(built, b.name)) for b in bars))
        return timing

    def guess(self, nest: LoopNest, machine: Machine, sizes: Sizes) -> float:
        """Microseconds by the time model for a nest without a build."""
        return self.model(nest, machine, sizes, {}).us

    def model(
        self, nest: LoopNest, machine: Machine, sizes: Sizes, figures: Mapping[str, float]
    ) -> Timing:
        """The time by the time model, with the figures of a build if there are any."""
        return modelled(nest, machine, self.rules, sizes, figures)

    def place(self, machine: Machine) -> str:
        """The torch device of the kernels' tensors: the target's GPU, else the CPU."""
        return "cpu" if self.present(machine) else DEVICE

    def enqueued(
        self, built: Built, nest: LoopNest, machine: Machine, sizes: Sizes
    ) -> Callable[..., None]:
        """The function that enqueues all launches on GPU tensors in torch's stream."""
        image, made = self.calls(built, nest, machine, sizes)
        on = _torch()
        on.ready()
        return self.driver.launcher(image, made, on.stream)

    def available(self, machine: Machine) -> Mapping[str, Any]:
        """What this backend can do here: run and measure on the target's GPU, else check in another way and model."""
        toolchain, why = self.compiler()
        if not toolchain:
            return {"correct_by": None, "time_kind": None, "why": why}
        if lacking := self.present(machine):
            here = {"correct_by": self.correct_by, "time_kind": "modelled", "why": lacking}
            return here | {"toolchain": toolchain}
        return {
            "correct_by": "device",
            "time_kind": "measured",
            "why": "",
            "toolchain": f"{toolchain}, torch {version('torch')}",
            "device": device_names(machine)[0],
            "driver": driver(),
            "devices": nodes(),
            "memory": None,  # a driver reserves more addresses than there is memory
            "own_turns": True,
            "lasting": True,
        }


@cache
def gpu_lacks(vendor: str, arch: int | str, names: tuple[str, ...]) -> str:
    """Why a GPU is not in this computer; empty where it is. vendor: of torch's build, as in `torch.version`."""
    if not chips():
        return "there is no GPU here"
    try:
        return _torch().lacks(vendor, arch, names)
    except (BackendError, OSError, RuntimeError) as error:
        return f"the GPU does not answer: {error}"


def _torch() -> ModuleType:
    """The module that needs torch, whose import takes a second. It is only imported where there is a GPU."""
    from backends.gpu.launched import torch_stream

    return torch_stream
