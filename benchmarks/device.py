"""The device under test: its queue, its clocks, its names and versions."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

NAME = "cuda"  # what torch calls a GPU, of any vendor
_FLUSH_OVER_CACHE = 4  # the buffer is so many times the cache
_LEAST_FLUSH = 256 << 20
_QUERY = "name,driver_version,clocks.sm,clocks.mem,clocks.max.sm,power.draw"


class TorchDevice:
    """A GPU through torch, as `timing.Device`."""

    def __init__(self) -> None:
        cache = getattr(torch.cuda.get_device_properties(0), "L2_cache_size", 0)
        size = max(_LEAST_FLUSH, _FLUSH_OVER_CACHE * cache)
        self.buffer = torch.empty(size // 4, dtype=torch.int32, device=NAME)
        self.cycles_per_us = self._cycles_per_us()

    def flush(self) -> None:
        self.buffer.zero_()

    def spin(self, us: float) -> None:
        torch.cuda._sleep(int(us * self.cycles_per_us))

    def mark(self) -> torch.cuda.Event:
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def us_between(self, first: torch.cuda.Event, second: torch.cuda.Event) -> float:
        return 1e3 * first.elapsed_time(second)

    def wait(self) -> None:
        torch.cuda.synchronize()

    def now(self) -> float:
        return time.perf_counter()

    def _cycles_per_us(self) -> float:
        """The rate of the counter that `_sleep` counts with."""
        cycles = 20_000_000
        torch.cuda._sleep(cycles)
        start = self.mark()
        torch.cuda._sleep(cycles)
        end = self.mark()
        self.wait()
        return cycles / max(self.us_between(start, end), 1e-3)


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
    """The names of all that ran on the device during one call, each once, in order; none where
    this machine does not let anyone look."""
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
    names = [e.name for e in events if e.device_type == on_device]
    return list(dict.fromkeys(names))


def _query() -> dict[str, str]:
    try:
        done = subprocess.run(
            ["nvidia-smi", f"--query-gpu={_QUERY}", "--format=csv,noheader,nounits", "--id=0"],
            capture_output=True, text=True, timeout=20, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return {}
    return dict(zip(_QUERY.split(","), (w.strip() for w in done.stdout.split(",")), strict=False))


def _number(text: str | None) -> int | None:
    return int(float(text)) if text and text.replace(".", "").isdigit() else None
