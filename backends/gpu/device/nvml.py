"""The clocks of an NVIDIA GPU, read through the driver's NVML library."""

from __future__ import annotations

import ctypes
from functools import cache

LIBRARY = "libnvidia-ml.so.1"
_CLOCKS = {"clock_sm_mhz": 1, "clock_memory_mhz": 2}  # values of nvmlClockType_t


def clocks(uuid: str) -> dict[str, float]:
    """The current clocks in MHz; empty where the library or the GPU is not available.

    uuid: of the GPU, as torch gives it.
    """
    library = _library(LIBRARY) if uuid else None
    if library is None:
        return {}
    gpu = ctypes.c_void_p()
    name = uuid if uuid.startswith("GPU-") else f"GPU-{uuid}"
    if library.nvmlDeviceGetHandleByUUID(name.encode(), ctypes.byref(gpu)):
        return {}
    return _read(library, gpu)


@cache
def _library(name: str) -> ctypes.CDLL | None:
    """The NVML library, initialised for this process; None where there is none."""
    try:
        library = ctypes.CDLL(name)
    except OSError:
        return None
    return None if library.nvmlInit_v2() else library


def _read(library: ctypes.CDLL, gpu: ctypes.c_void_p) -> dict[str, float]:
    found = {}
    for name, number in _CLOCKS.items():
        value = ctypes.c_uint()
        if not library.nvmlDeviceGetClockInfo(gpu, number, ctypes.byref(value)):
            found[name] = float(value.value)
    return found


class _Utilization(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


def utilization(number: int = 0) -> float | None:
    """The percentage of the last fraction of a second in which a kernel was running on a GPU; None
    where it is unknown. number: of the GPU, in the driver's order."""
    library = _library(LIBRARY)
    gpu, found = ctypes.c_void_p(), _Utilization()
    if library is None or library.nvmlDeviceGetHandleByIndex_v2(number, ctypes.byref(gpu)):
        return None
    if library.nvmlDeviceGetUtilizationRates(gpu, ctypes.byref(found)):
        return None
    return float(found.gpu)
