"""The clocks of an NVIDIA GPU, read through the driver's NVML library."""

from __future__ import annotations

import ctypes

LIBRARY = "libnvidia-ml.so.1"
_CLOCKS = {"clock_sm_mhz": 1, "clock_memory_mhz": 2}  # values of nvmlClockType_t


def clocks(uuid: str) -> dict[str, float]:
    """The current clocks in MHz; empty where the library or the GPU is not available.

    uuid: of the GPU, as torch gives it.
    """
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError:
        return {}
    if not uuid or library.nvmlInit_v2():
        return {}
    try:
        gpu = ctypes.c_void_p()
        name = uuid if uuid.startswith("GPU-") else f"GPU-{uuid}"
        if library.nvmlDeviceGetHandleByUUID(name.encode(), ctypes.byref(gpu)):
            return {}
        return _read(library, gpu)
    finally:
        library.nvmlShutdown()


def _read(library: ctypes.CDLL, gpu: ctypes.c_void_p) -> dict[str, float]:
    found = {}
    for name, number in _CLOCKS.items():
        value = ctypes.c_uint()
        if not library.nvmlDeviceGetClockInfo(gpu, number, ctypes.byref(value)):
            found[name] = float(value.value)
    return found
