"""AMD's driver: launches kernels of a code object on torch's tensors in torch's stream."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from backends.gpu.source.launches import Call

LIBRARY = "libamdhip64.so"


class DriverError(RuntimeError):
    """A call that the driver refused, or an earlier kernel that faulted."""


@cache
def driver() -> Any:
    """The driver's library. Raises OSError if there is none."""
    found = ctypes.CDLL(LIBRARY)
    found.hipGetErrorString.restype = ctypes.c_char_p
    return found


def launcher(image: Path, calls: Sequence[Call], stream: Callable[[], int]) -> Callable[..., None]:
    """A function that enqueues all calls on the kernel's tensors. stream: gives the handle of the
    queue.

    The function keeps the module alive, because it uses the module's functions.
    """
    module = ctypes.c_void_p()
    _check(driver().hipModuleLoadData(ctypes.byref(module), image.read_bytes()))
    functions: dict[str, ctypes.c_void_p] = {}
    for call in calls:
        if call.name not in functions:
            functions[call.name] = ctypes.c_void_p()
            _check(
                driver().hipModuleGetFunction(
                    ctypes.byref(functions[call.name]), module, call.name.encode()
                )
            )

    def launch(*tensors: Any) -> None:
        queue = ctypes.c_void_p(stream())
        for call in calls:
            if not call.grid:
                continue
            pointers = [ctypes.c_void_p(tensors[n].data_ptr()) for n in call.tensors]
            held = (*pointers, *(ctypes.c_int(n) for n in call.arguments))
            arguments = (ctypes.c_void_p * max(1, len(held)))(*map(ctypes.addressof, held))
            grid, block = (call.grid, 1, 1), (call.block, 1, 1)
            _check(
                driver().hipModuleLaunchKernel(
                    functions[call.name],
                    *map(ctypes.c_uint, (*grid, *block, call.shared)),
                    *(queue, arguments, None),
                )
            )

    return launch


def _check(failed: int) -> None:
    if failed:
        text = driver().hipGetErrorString(failed)
        raise DriverError((text or b"error %d" % failed).decode())
