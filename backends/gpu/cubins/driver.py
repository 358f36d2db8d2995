"""NVIDIA's driver: launches kernels of a cubin on torch's tensors in torch's stream."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

from backends.gpu.source.launches import Call, Map

LIBRARY = "libcuda.so.1"
_MOST_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_CLUSTER = 4  # CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
_COOPERATIVE = 2  # CU_LAUNCH_ATTRIBUTE_COOPERATIVE
_PLAIN_SHARED = 48 << 10  # shared memory of a thread block without an explicit attribute


# CUtensorMapDataType, and the bytes of an element. With the tf32 type the TMA rounds f32 while it
# copies. Dtypes whose values do not matter to it are unsigned integers of the same size.
_KINDS = {
    **dict.fromkeys(("u8", "i8", "b8", "f8e4m3", "f8e5m2", "f8e8m0"), (0, 1)),
    "i16": (1, 2),
    "i32": (3, 4),
    "i64": (5, 8),
    "f16": (6, 2),
    "f32": (7, 4),
    "f64": (8, 8),
    "bf16": (9, 2),
    "tf32": (11, 4),
}
_SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}  # CUtensorMapSwizzle
_PROMOTED = 3  # CU_TENSOR_MAP_L2_PROMOTION_L2_256B


class Attribute(ctypes.Structure):
    """CUlaunchAttribute: the cluster dimension, or whether the launch is cooperative."""

    _fields_ = (
        ("number", ctypes.c_int),
        ("unused", ctypes.c_int),
        ("value", ctypes.c_uint * 16),
    )


class Config(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        *((f"grid_{axis}", ctypes.c_uint) for axis in "xyz"),
        *((f"block_{axis}", ctypes.c_uint) for axis in "xyz"),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("attribute_count", ctypes.c_uint),
    )


class _Aligned:
    """The 128 bytes of a CUtensorMap, aligned to 64 bytes."""

    def __init__(self) -> None:
        self.held = (ctypes.c_uint8 * 192)()
        self.address = -(-ctypes.addressof(self.held) // 64) * 64


@dataclass(frozen=True, slots=True)
class Encoding:
    """The arguments of cuTensorMapEncodeTiled, contiguous dimension first."""

    type: int
    swizzle: int
    promotion: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]  # bytes, of all dimensions but the first
    box: tuple[int, ...]
    steps: tuple[int, ...]


class DriverError(RuntimeError):
    """A driver call that failed, or an earlier fault of a kernel that it reports."""


@cache
def driver() -> Any:
    """The driver's library. Raises OSError where there is none."""
    return ctypes.CDLL(LIBRARY)


class Module:
    """The kernels of a cubin, in torch's context."""

    def __init__(self, image: bytes):
        self.handle = ctypes.c_void_p()
        self.functions: dict[str, ctypes.c_void_p] = {}
        _check(driver().cuModuleLoadData(ctypes.byref(self.handle), image))

    def function(self, call: Call) -> ctypes.c_void_p:
        """The kernel of a call, with its shared memory attribute set."""
        if call.name not in self.functions:
            found = ctypes.c_void_p()
            name = call.name.encode()
            _check(driver().cuModuleGetFunction(ctypes.byref(found), self.handle, name))
            self.functions[call.name] = found
        found = self.functions[call.name]
        if call.shared > _PLAIN_SHARED:
            _check(driver().cuFuncSetAttribute(found, _MOST_SHARED, call.shared))
        return found

    def close(self) -> None:
        """Unloads the module."""
        _check(driver().cuModuleUnload(self.handle))


def launcher(image: Path, calls: Sequence[Call], stream: Callable[[], int]) -> Callable[..., None]:
    """The function that enqueues all calls on the kernel's tensors. stream: returns the handle of the stream."""
    module = Module(image.read_bytes())
    ready = [(call, module.function(call)) for call in calls]
    launch_kernel = driver().cuLaunchKernelEx

    def launch(*tensors: Any) -> None:
        queue = stream()
        for call, function in ready:
            if not call.grid:
                continue
            pointers = [ctypes.c_void_p(tensors[n].data_ptr()) for n in call.tensors]
            numbers = [ctypes.c_int(n) for n in call.arguments]
            maps = [described(m, tensors) for m in call.maps]
            places = [*map(ctypes.addressof, pointers), *(m.address for m in maps)]
            places += map(ctypes.addressof, numbers)
            arguments = (ctypes.c_void_p * max(1, len(places)))(*places)
            own = Attribute(_CLUSTER, 0, (call.cluster, 1, 1))
            if call.cooperative:
                own = Attribute(_COOPERATIVE, 0, (1,))
            decided = call.cluster > 1 or call.cooperative
            at, count = (ctypes.addressof(own), 1) if decided else (None, 0)
            config = Config(call.grid, 1, 1, call.block, 1, 1, call.shared, queue, at, count)
            _check(launch_kernel(ctypes.byref(config), function, arguments, None))

    return launch


def described(given: Map | None, tensors: Sequence[Any]) -> _Aligned:
    """The tensor map of a tensor. Raises DriverError where the TMA does not take the tensor."""
    made = _Aligned()
    if given is None:
        return made
    e, dims = encoding(given), len(given.sizes)
    _check(
        driver().cuTensorMapEncodeTiled(
            ctypes.c_void_p(made.address),
            e.type,
            dims,
            ctypes.c_void_p(tensors[given.tensor].data_ptr()),
            (ctypes.c_uint64 * dims)(*e.sizes),
            (ctypes.c_uint64 * max(1, dims - 1))(*e.strides),
            (ctypes.c_uint32 * dims)(*e.box),
            (ctypes.c_uint32 * dims)(*e.steps),
            0,  # not interleaved
            e.swizzle,
            e.promotion,
            0,  # out-of-bounds elements are zeros
        )
    )
    return made


def encoding(given: Map) -> Encoding:
    """The driver's arguments for a tensor map."""
    kind, size = _KINDS[given.dtype]
    sizes, steps = given.sizes[::-1], given.steps[::-1]
    return Encoding(
        type=kind,
        swizzle=_SWIZZLES[given.swizzle],
        promotion=_PROMOTED,
        sizes=sizes,
        strides=tuple(size * prod(sizes[: d + 1]) for d in range(len(sizes) - 1)),
        box=tuple(extent * step for extent, step in zip(given.box[::-1], steps, strict=True)),
        steps=steps,
    )


def _check(failed: int) -> None:
    if failed:
        text = ctypes.c_char_p()
        driver().cuGetErrorString(failed, ctypes.byref(text))
        raise DriverError((text.value or b"error %d" % failed).decode())
