"""A GPU through torch: its identity, queue and clock."""

from __future__ import annotations

import time

import torch

from backends.gpu.device.nodes import DEVICE
from machines.gpu.facts import own_name

OVER_CACHE = 4  # size of the flush buffer in multiples of the L2 cache
LEAST_FLUSH = 256 << 20  # bytes
_ticks_per_us: list[float] = []  # of this process's GPU, once measured


class CudaDevice:
    """This process's GPU, as a `timing.Device`. uuid: identifies it in NVML."""

    def __init__(self) -> None:
        facts = torch.cuda.get_device_properties(0)
        size = max(LEAST_FLUSH, OVER_CACHE * getattr(facts, "L2_cache_size", 0))
        self.buffer = torch.empty(size // 4, dtype=torch.int32, device=DEVICE)
        self.uuid = str(getattr(facts, "uuid", ""))
        if not _ticks_per_us:
            _ticks_per_us.append(self._ticks_per_us())

    def flush(self) -> None:
        self.buffer.zero_()

    def spin(self, us: float) -> None:
        torch.cuda._sleep(int(us * _ticks_per_us[0]))

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

    def _ticks_per_us(self) -> float:
        """The clock rate of `_sleep`, measured once the GPU runs at full speed."""
        ticks = 10_000_000
        torch.cuda._sleep(ticks)
        start = self.mark()
        torch.cuda._sleep(ticks)
        end = self.mark()
        self.wait()
        return ticks / max(self.us_between(start, end), 1e-3)


def lack(arch: int | str, names: tuple[str, ...]) -> str:
    """Why this computer's GPU is not the target's; empty where it is. Opens the GPU.

    Chips of one architecture differ in speed, so the full name decides. names: see `device_names`.
    """
    if not torch.cuda.is_available():
        return "torch sees no GPU"
    facts = torch.cuda.get_device_properties(0)
    found = getattr(facts, "gcnArchName", "").split(":")[0] or 10 * facts.major + facts.minor
    if isinstance(arch, int):
        found = 10 * facts.major + facts.minor
    if found != arch:
        return f"the GPU here is a {facts.name} of architecture {found}; the target's is {arch}"
    if own_name(facts.name) not in names:
        here = f"the GPU here is a {facts.name}, on which nothing is measured"
        return f"{here}: the target's is a {' or '.join(names)}"
    return ""
