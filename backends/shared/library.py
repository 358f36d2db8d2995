"""A kernel in a shared library, called in this process by the arguments of `prelude/launch.h`."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from functools import partial

from backends.backend import BackendError, Built, Sizes
from backends.shared.arrays import Fenced
from backends.shared.launches import calls
from backends.shared.names import Names
from ir.nest.nest import LoopNest
from ir.sizes import bind


class _Args(ctypes.Structure):
    _fields_ = (
        ("tensors", ctypes.POINTER(ctypes.c_void_p)),
        ("sizes", ctypes.POINTER(ctypes.c_int64)),
        ("threads", ctypes.c_int64),
    )


def launches(
    built: Built,
    names: Names,
    nest: LoopNest,
    sizes: Sizes,
    buffers: Mapping[str, Fenced],
    threads: int,
) -> list[tuple[str, Callable[[], None]]]:
    """The name of each launch and what runs it, in order; BackendError("check") where the library
    lacks it. buffers: all tensors; whoever calls keeps them until the last call returns."""
    try:
        library = ctypes.CDLL(str(built.file))
    except OSError as error:
        raise BackendError("check", f"the library cannot be loaded: {error}") from None
    pointers, found = [b.array.ctypes.data for b in buffers.values()], []
    for call in calls(nest, bind(nest.spec, sizes)):
        name = names.launch(call.launch)
        if (function := getattr(library, name, None)) is None:
            raise BackendError("check", f"the source defines no `{name}`")
        function.restype = None
        tensors = (ctypes.c_void_p * len(call.tensors))(*(pointers[n] for n in call.tensors))
        numbers = (ctypes.c_int64 * len(call.sizes))(*call.sizes)
        args = ctypes.byref(_Args(tensors, numbers, threads))
        found.append((call.launch, partial(function, args)))
    return found
