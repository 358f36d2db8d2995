"""How long the emulator takes: `bazel test --config=benchmark //backends/...`."""

from __future__ import annotations

import ctypes
import resource

import numpy as np
import pytest

from backends.gpu.source.launches import calls, constants
from backends.gpu.source.names import known_sizes
from backends.hip import emulator
from backends.hip.backend import program, spelled
from backends.hip.build import launches, written
from backends.hip.testing.samples import backend, machine_of, nest_of
from backends.parameters import parameters
from backends.shared.arrays import to_device
from ir.reference.inputs import random_inputs

SIZES = dict(M=256, K=256, N=256)
MOST = {"compile": 0.6, "run": 0.15}  # seconds of the processor


def spent(who: int) -> float:
    """Seconds of the processor."""
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


@pytest.mark.parametrize("kind", MOST)
def test_a_matmul_in_tiles(benchmark, kind, tmp_path):
    """256 x 256 x 256 in tiles of 64 x 64 x 32 in LDS, in one order, with all checks."""
    nest, machine = nest_of("staged"), machine_of("mi300")
    own = spelled(nest)
    file = written(backend().emit(nest, machine), program(own, machine), tmp_path)
    given, known = launches(file), known_sizes(nest, own, SIZES)
    made = list(calls(given, known))
    inputs = random_inputs(nest.spec, SIZES, np.random.default_rng(0))
    held = [
        (p.name, to_device(inputs[p.name], p.dtype)) for p in parameters(nest) if p.role == "input"
    ]
    held += [
        (p.name, np.zeros((256, 256), np.uint16)) for p in parameters(nest) if p.role != "input"
    ]

    def compiled() -> ctypes.CDLL:
        return emulator.library(file, {c.name for c in made}, constants(given, known))

    def run() -> float:
        began = spent(who)
        if kind == "compile":
            compiled()
        else:
            emulator.launch(kernels, made[0], held, False)
        return spent(who) - began

    kernels = compiled() if kind == "run" else None
    who = resource.RUSAGE_SELF if kind == "run" else resource.RUSAGE_CHILDREN
    taken = benchmark.pedantic(run, rounds=1)
    benchmark.extra_info["seconds"] = round(taken, 3)
    assert taken <= MOST[kind]
