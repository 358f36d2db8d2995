"""What is known of the times of a network as a whole; `clocks.py` measures them, with PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

MEASURED = "measured"


@dataclass(frozen=True, slots=True)
class WholeTimes:
    """Measured microseconds of a network's calls."""

    us: float  # a call, its launches issued one by one
    graph_us: float | None  # the same as a device graph; None where the device has none
    kernels: Mapping[str, float]  # one launch of each kernel, by name

    @property
    def best_us(self) -> float:
        """Of a call, as it is faster."""
        return self.us if self.graph_us is None else min(self.us, self.graph_us)
