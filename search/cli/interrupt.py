"""The interrupt: Ctrl-C, or a request to end, as one orderly end."""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)

_Handler = Callable[[int, FrameType | None], Any] | int | None


class Interrupt:
    """While it is entered, the first signal raises KeyboardInterrupt and is remembered; a second
    one does what it does to any program."""

    def __init__(self) -> None:
        self.came = False
        self._before: dict[signal.Signals, _Handler] = {}

    def __enter__(self) -> Interrupt:
        for number in SIGNALS:
            self._before[number] = signal.signal(number, self._take)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _take(self, number: int, frame: FrameType | None) -> None:
        self.came = True
        for each in SIGNALS:
            signal.signal(each, signal.SIG_DFL)
        raise KeyboardInterrupt
