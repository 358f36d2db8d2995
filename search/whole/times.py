"""The measured times of a whole network. `clocks.py` measures them with PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

MEASURED = "measured"


@dataclass(frozen=True, slots=True)
class WholeTimes:
    """Measured microseconds of a network's calls."""

    us: float  # a call with separate launches
    graph_us: float | None  # the same as a device graph; None if the device has none
    kernels: Mapping[str, float]  # one launch of each kernel, by name

    @property
    def best_us(self) -> float:
        """The faster of the two times of a call."""
        return self.us if self.graph_us is None else min(self.us, self.graph_us)
