"""The device under test: its queue, its clocks, its names and versions."""

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
    """What this computer's device can do; KernelError where it is not the target's chip. It is
    looked for in another process, so processes may be forked afterwards."""
    available = backend_for(machine).available(machine)
    if available["correct_by"] != "device":
        why = available["why"] or f"its kernels are run by the {available['correct_by']}"
        raise KernelError(
            f"there is no `{machine.name}` in this computer: {why}", where="--target", hint=hint
        )
    return available


def is_gpu(name: str) -> bool:
    """Whether a target is a GPU; the processor of this computer is a target, too."""
    return target(name).model.name == "gpu"


def prepare(folder: Path | None = None) -> None:
    """Puts the compiler's cache where later commands find it, and turns TF32 off."""
    folder = folder or Path(tempfile.gettempdir()) / "benchmarks-inductor"
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(folder))
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", str(min(16, os.cpu_count() or 1)))
    full_precision()


def full_precision() -> None:
    """f32 products in f32, for everyone; a baseline may not leave them changed."""
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False


def forget() -> None:
    """Drops what a compiled baseline holds: code, graphs and their memory, global flags."""
    torch._dynamo.reset()
    trees = sys.modules.get("torch._inductor.cudagraph_trees")
    if trees is not None:
        trees.reset_cudagraph_trees()
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()
    full_precision()


def facts() -> dict[str, Any]:
    """What a result file says of the machine; clocks as they are now."""
    import triton  # only where a device is

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
    """The names of the kernels that one call launches, each once, in order."""
    return list(dict.fromkeys(launches_seen(call, inputs)))


def launches_seen(call: Any, inputs: Sequence[Any]) -> list[str]:
    """The kernel's name of each launch during one call, in order; empty where this machine allows no
    profiler."""
    return [name for name, _ in launches_timed(call, inputs)]


def launches_timed(call: Any, inputs: Sequence[Any]) -> list[tuple[str, float]]:
    """As `launches_seen`, with the microseconds that each launch took on the device."""
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
