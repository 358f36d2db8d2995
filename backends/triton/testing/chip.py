"""A fake Triton driver of a GPU that is not here."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.runtime import driver


class Chip:
    """Records the code that it loads, and the arguments of each launch."""

    def __init__(self, target=None):
        self.target = target or GPUTarget("cuda", 90, 32)
        self.loaded, self.launched = [], []
        self.device, self.stream = 0, 0
        self.utils = SimpleNamespace(
            get_device_properties=lambda _: {"max_shared_mem": 232448, "warpSize": 32},
            load_binary=self._load,
        )

    def launcher_cls(self, source, metadata):
        return lambda *given: self.launched.append(given)

    def _load(self, name, code, shared, number):
        self.loaded.append(code)
        return "module", (name, number, len(self.loaded)), 32, 0, 1024

    def get_current_target(self):
        return self.target

    def get_current_device(self):
        return self.device

    def get_current_stream(self, number=0):
        return self.stream + 100 * number


def installed(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Chip:
    """A chip as the one that Triton uses in a test. folder: for what is compiled."""
    found = Chip()
    monkeypatch.setattr(driver, "_active", found)
    monkeypatch.setattr(knobs.cache, "dir", str(folder / "cache"))
    return found
