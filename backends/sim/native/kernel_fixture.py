"""Small kernels for the simulator's tests: compiled, run, and compared."""

import atexit
import functools
import os
import shutil
import subprocess
import tempfile
import tomllib
from pathlib import Path

import numpy as np

from backends.sim.native.kernel_process import kernel_process
from backends.sim.native.load import device_include, load

_TARGETS = Path(__file__).parents[2] / "targets"
_DTYPES = {
    "float32": "f32",
    "float16": "f16",
    "uint16": "bf16",
    "int32": "i32",
    "int64": "i64",
    "bool": "b8",
    "uint8": "b8",
}
_PROLOGUE = """
#include "device.h"
using namespace device;
enum : Axis { M, N, K, P, Q };
"""


@functools.cache
def target(name: str) -> dict:
    """A target's tables, as in its file."""
    return tomllib.loads((_TARGETS / f"{name}.toml").read_text())


def machine(name: str = "npu_small", **changes) -> dict:
    """The machine argument of `simulate`. changes: replace fields, or fields of a table."""
    tables = target(name)
    made = {"local_bytes": tables["spaces"]["local"]["bytes"], **tables["sim"]}
    for field, value in changes.items():
        made[field] = {**made[field], **value} if isinstance(value, dict) else value
    return made


def tiny(**changes) -> dict:
    """Two by two processing elements."""
    return machine("npu_small", rows=2, columns=2, **changes)


@functools.cache
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="simulator_test_"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@functools.cache
def compiled(source: str) -> str:
    """The library of a source text with axes M N K P Q and the device interface."""
    stem = _folder() / f"kernel_{len(list(_folder().glob('*.cc')))}"
    stem.with_suffix(".cc").write_text(_PROLOGUE + source)
    command = [os.environ.get("CXX", "g++"), "-std=c++20", "-O1", "-fPIC", "-shared", "-Wall"]
    command += ["-Wextra", "-Werror", "-Wno-unused-but-set-variable", f"-I{device_include()}"]
    command += [str(stem.with_suffix(".cc")), "-o", str(stem.with_suffix(".so"))]
    subprocess.run(command, check=True)
    return str(stem.with_suffix(".so"))


def run(source: str, tensors: dict[str, np.ndarray], sizes=(), **options) -> dict:
    """Runs KERNEL(k) of the source on all tensors in order, in place."""
    launches = options.pop("launches", [("k", list(range(len(tensors))), list(sizes))])
    chip, library = options.pop("machine", None) or tiny(), compiled(source)
    with kernel_process(Path(library)) as place:
        return load().simulate(
            chip,
            place,
            launches,
            list(tensors.values()),
            names=list(tensors),
            dtypes=[_DTYPES[array.dtype.name] for array in tensors.values()],
            **options,
        )


def to_bfloat(values: np.ndarray) -> np.ndarray:
    """Rounds to bfloat16, to nearest even; returns the bits as uint16."""
    bits = np.asarray(values, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bfloat(bits: np.ndarray) -> np.ndarray:
    """The float32 values of bfloat16 bits."""
    return (bits.astype(np.uint32) << 16).view(np.float32)
