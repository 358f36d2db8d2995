"""The speed of the emulator: `bazel test --config=benchmark //backends/...`."""

from __future__ import annotations

import ctypes
import resource
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from backends.gpu.source.launches import Call, calls, constants
from backends.gpu.source.names import known_sizes
from backends.hip import emulator
from backends.hip.backend import program, spelled
from backends.hip.build import launches, written
from backends.hip.testing.samples import backend, machine_of, nest_of
from backends.parameters import parameters
from backends.shared.arrays import to_device
from ir.reference.inputs import random_inputs

SIZES = dict(M=256, K=256, N=256)
MOST = {"compile": 0.6, "run": 0.15}  # seconds of processor time


class Tensor(ctypes.Structure):
    """A tensor of `native/runtime.h`."""

    _fields_ = (
        ("start", ctypes.c_void_p),
        ("bytes", ctypes.c_ulonglong),
        ("name", ctypes.c_char_p),
    )


def spent(who: int) -> float:
    """Seconds of processor time."""
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def launch(code: Path, call: Call, tensors: Mapping[str, np.ndarray]) -> None:
    """Runs a launch in this process, so that its time is known."""
    ctypes.CDLL("libm.so.6", mode=ctypes.RTLD_GLOBAL)
    kernels = ctypes.CDLL(str(code))
    rows = ((a.ctypes.data, a.nbytes, name.encode()) for name, a in tensors.items())
    held = (Tensor * len(tensors))(*rows)
    pointers = [ctypes.c_void_p(a.ctypes.data) for a in tensors.values()]
    values = (*(pointers[n] for n in call.tensors), *map(ctypes.c_int, call.arguments))
    given = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
    kernels.emulated_tensors(held, len(held))
    entry = kernels[f"emulated_{call.name}"]
    entry.restype = ctypes.c_char_p
    said = entry(call.grid, call.block, call.shared, 0, given)
    assert not said, said


def test_a_matmul_in_tiles(benchmark, tmp_path):
    """256 x 256 x 256 in tiles of 64 x 64 x 32 in LDS, in one order, with all checks."""
    nest, machine = nest_of("staged"), machine_of("mi300")
    own = spelled(nest)
    file = written(backend().emit(nest, machine), program(own, machine), tmp_path)
    given, known = launches(file), known_sizes(nest, own, SIZES)
    (call,) = calls(given, known)
    inputs = random_inputs(nest.spec, SIZES, np.random.default_rng(0))
    tensors = {
        p.name: to_device(inputs[p.name], p.dtype)
        if p.role == "input"
        else np.zeros((256, 256), np.uint16)
        for p in parameters(nest)
    }

    def run() -> dict[str, float]:
        before = spent(resource.RUSAGE_CHILDREN)
        code = emulator.library(file, {call.name}, constants(given, known))
        compiled = spent(resource.RUSAGE_CHILDREN) - before
        before = spent(resource.RUSAGE_SELF)
        launch(code, call, tensors)
        return {"compile": compiled, "run": spent(resource.RUSAGE_SELF) - before}

    taken = benchmark.pedantic(run, rounds=1)
    assert tensors["y"].any()
    for name, seconds in taken.items():
        benchmark.extra_info[name] = round(seconds, 3)
        assert 0 < seconds <= MOST[name]
