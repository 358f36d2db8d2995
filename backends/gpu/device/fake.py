"""A simulated device for tests of timing; all times are in microseconds."""

from __future__ import annotations

from typing import Any

import torch

from backends.gpu.device import arena, running


class Fake:
    """A device with one queue and a host clock.

    host_us: host time of issuing a call.
    late: work that events do not span.
    flushed_us: time of a cache flush.
    """

    def __init__(self, host_us: float = 20.0, late: float = 0.0, flushed_us: float = 500.0):
        # The host's clock; the time at which the device becomes idle
        self.host, self.queue = 0.0, 0.0
        self.host_us, self.late, self.flushed_us = host_us, late, flushed_us
        self.hidden = 0.0
        self.cold = False
        self.seen: list[float] = []

    def _enqueue(self, us: float) -> None:
        self.queue = max(self.queue, self.host) + us

    def flush(self) -> None:
        self._enqueue(self.flushed_us)
        self.cold = True

    def spin(self, us: float) -> None:
        self._enqueue(us)

    def mark(self) -> float:
        return max(self.queue, self.host)

    def us_between(self, first: float, second: float) -> float:
        return second - first

    def wait(self) -> None:
        self.host = max(self.host, self.queue, self.hidden)

    def now(self) -> float:
        return 1e-6 * self.host

    def call(self, us: float) -> None:
        """A kernel, which is four times as fast if its data is in the cache."""
        self.host += self.host_us
        self._enqueue(us if self.cold else us / 4)
        self.hidden = max(self.hidden, self.host) + self.late
        self.cold = False
        self.seen.append(us)


class _Stream:
    cuda_stream = 77


class _FakeGpu(Fake):
    uuid = ""


def stand_in(patch: Any, language: Any) -> None:
    """Replaces the GPU of a language's target by torch's CPU, in tests of a driver that records its
    calls.

    patch: pytest's `monkeypatch`. language: the backend or its module, with `present`.
    """
    patch.setattr(language, "present", lambda *_: "")
    patch.setattr(arena, "DEVICE", "cpu")
    patch.setattr(running, "CudaDevice", _FakeGpu)
    for name, value in dict(
        init=lambda: None,
        synchronize=lambda: None,
        mem_get_info=lambda: (1 << 30, 1 << 30),
        current_stream=_Stream,
    ).items():
        patch.setattr(torch.cuda, name, value)
