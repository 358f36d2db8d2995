"""The device under test: its availability, its clocks, its name and versions."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from backends.gpu.device.nodes import first_seen
from backends.registry import backend_for, target
from ir.errors import KernelError
from ir.machine import Machine

_QUERY = "name,driver_version,clocks.sm,clocks.mem,clocks.max.sm,power.draw"


def require(machine: Machine, hint: str = "run it where that chip is") -> Mapping[str, Any]:
    """Returns what this computer's device can do. Raises KernelError if it is not the target's
    chip.

    It looks for the device in another process, so that this one can still fork.
    """
    available = backend_for(machine).available(machine)
    if available["correct_by"] != "device":
        why = available["why"] or f"its kernels are run by the {available['correct_by']}"
        raise KernelError(
            f"there is no `{machine.name}` in this computer: {why}", where="--target", hint=hint
        )
    return available


def is_gpu(name: str) -> bool:
    """Whether a target is a GPU. The processor of this computer is a target too."""
    return target(name).model.name == "gpu"


def prepare(folder: Path | None = None) -> None:
    """Sets the folder of the compiler's cache, so that later commands find it, and disables
    TF32."""
    folder = folder or Path(tempfile.gettempdir()) / "benchmarks-inductor"
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(folder))
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", str(min(16, os.cpu_count() or 1)))
    full_precision()


def full_precision() -> None:
    """Makes f32 products use f32. A baseline may have changed the setting."""
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False


def forget() -> None:
    """Frees what a compiled baseline holds: code, graphs and their memory, global flags."""
    torch._dynamo.reset()
    trees = sys.modules.get("torch._inductor.cudagraph_trees")
    if trees is not None:
        trees.reset_cudagraph_trees()
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()
    full_precision()


def facts() -> dict[str, Any]:
    """Returns the facts about the machine for a result file. Clocks are the current ones."""
    import triton  # Available only with a device.

    found = _query()
    name = torch.cuda.get_device_name(0)
    return {
        "machine": name if name.startswith("NVIDIA") or torch.version.hip else f"NVIDIA {name}",
        "driver": found.get("driver_version", ""),
        "versions": {
            "torch": torch.__version__,
            "triton": triton.__version__,
            "runtime": torch.version.cuda or torch.version.hip or "",
            "python": platform.python_version(),
        },
        "clocks_mhz": {
            "sm": _number(found.get("clocks.sm")),
            "memory": _number(found.get("clocks.mem")),
            "sm_max": _number(found.get("clocks.max.sm")),
        },
    }


def kernels_seen(call: Any, inputs: Sequence[Any]) -> list[str]:
    """Returns the names of the kernels that one call launches, each once, in order."""
    return list(dict.fromkeys(launches_seen(call, inputs)))


def launches_seen(call: Any, inputs: Sequence[Any]) -> list[str]:
    """Returns the kernel name of each launch during one call, in order. Empty if this machine does
    not allow a profiler."""
    return [name for name, _ in launches_timed(call, inputs)]


def launches_timed(call: Any, inputs: Sequence[Any]) -> list[tuple[str, float]]:
    """Returns the launches of `launches_seen` with their times on the device, in microseconds."""
    from torch.profiler import ProfilerActivity, profile

    torch.cuda.synchronize()
    try:
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
            call(*inputs)
            torch.cuda.synchronize()
        events = seen.events()
    except RuntimeError:
        return []
    on_device = torch.autograd.DeviceType.CUDA
    return [(e.name, e.time_range.elapsed_us()) for e in events if e.device_type == on_device]


def _query() -> dict[str, str]:
    try:
        done = subprocess.run(
            [
                "nvidia-smi",
                f"--query-gpu={_QUERY}",
                "--format=csv,noheader,nounits",
                f"--id={first_seen()}",
            ],
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return {}
    return dict(zip(_QUERY.split(","), (w.strip() for w in done.stdout.split(",")), strict=False))


def _number(text: str | None) -> int | None:
    return int(float(text)) if text and text.replace(".", "").isdigit() else None
