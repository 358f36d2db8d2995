"""Measures the host time of a call of a `ModelNew` file, which excludes its kernels, without a GPU.

Kernels are compiled as usual, and a driver without a device receives them: its launches do nothing.
Tensors are on the CPU. Times are processor times, so other processes do not count.

  python3 -m benchmarks.kernelbench.host_time work/level3/4_LeNet5.py
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
import triton
from torch.utils._python_dispatch import TorchDispatchMode
from triton.backends.compiler import GPUTarget

CALLS, REPEATS = 20, 15
MEMORY, THREADS = 232448, 1024  # of a block: any kernel fits


class Idle:
    """A driver whose launches do nothing."""

    def __init__(self, target: GPUTarget):
        self.launches, self.target = 0, target
        properties = {"max_shared_mem": MEMORY, "warpSize": target.warp_size}
        self.utils = SimpleNamespace(
            get_device_properties=lambda _: properties,
            load_binary=lambda name, *_: (name, name, 32, 0, THREADS),
        )

    def launcher_cls(self, *_: Any) -> Any:
        """Returns the launcher of a kernel."""
        return self._launch

    def _launch(self, *_: Any) -> None:
        self.launches += 1

    def get_current_target(self) -> GPUTarget:
        """Returns the target of the compiler."""
        return self.target

    def get_current_device(self) -> int:
        """Returns the only device."""
        return 0

    def get_current_stream(self, device: int = 0) -> int:
        """Returns the only stream."""
        return 0


class _Operators(TorchDispatchMode):
    """Counts PyTorch's operators."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        self.count += 1
        return operator(*args, **(kwargs or {}))


def host_time(file: Path, target: GPUTarget) -> dict[str, Any]:
    """Measures a call: microseconds of processor time, launches, and other operators of PyTorch."""
    idle = Idle(target)
    triton.runtime.driver.set_active(idle)
    torch.set_num_threads(1)
    new = _module(file)
    model, inputs = new.ModelNew(*new.get_init_inputs()), new.get_inputs()
    with torch.no_grad():
        for _ in range(3):
            model(*inputs)
        idle.launches = 0
        with _Operators() as operators:
            model(*inputs)
        launches, times = idle.launches, []
        for _ in range(REPEATS):
            start = time.process_time()
            for _ in range(CALLS):
                model(*inputs)
            times.append((time.process_time() - start) / CALLS * 1e6)
    return {
        "launches": launches,
        "operators": operators.count,
        "least_us": round(min(times), 1),
        "median_us": round(median(times), 1),
    }


def _module(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("new", file)
    assert spec is not None and spec.loader is not None, "a file of Python"
    module = importlib.util.module_from_spec(spec)
    sys.modules["new"] = module
    spec.loader.exec_module(module)
    return module


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command."""
    made = argparse.ArgumentParser(prog="host_time", description=__doc__)
    made.add_argument("file", type=Path, help="a file with `ModelNew`")
    made.add_argument(
        "--capability", type=int, default=90, help="compute capability of the GPU, as 90"
    )
    asked = made.parse_args(arguments)
    print(json.dumps(host_time(asked.file, GPUTarget("cuda", asked.capability, 32))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
