"""The PTX that the compiler makes from a text or from a kernel."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from backends.cutedsl import build, compiler
from backends.cutedsl.testing.samples import backend
from backends.gpu.child import in_child
from backends.gpu.source.launches import metadata
from backends.gpu.source.names import known_sizes
from ir.machine import Machine
from ir.nest.nest import LoopNest

ARCH = "sm_90a"
HEAD = """
import cutlass
import cutlass.cute as cute
from cutlass import BFloat16, Boolean, Float16, Float32, Float64, Int8, Int16, Int32, Int64, Uint8
from cutlass import Float8E4M3FN, Float8E5M2
from backends.cutedsl.kernel import *

@cute.kernel
def f_0({parameters}):
"""


def ptx(body: str, pointers: Sequence[str] = ("Float32", "Float32"), numbers: int = 0) -> str:
    """The PTX of a kernel body with pointers `x_ptr`, `y_ptr` of given types, and numbers `n0`, `n1`."""
    names = [f"{name}_ptr: cute.Pointer" for name in "xyz"[: len(pointers)]]
    names += [f"n{n}: Int32" for n in range(numbers)]
    text = HEAD.format(parameters=", ".join(names)) + body
    kernels = [compiler.Kernel("f_0", 32, 0, tuple(pointers), 0, numbers)]

    def work() -> bytes:
        own = Path(tempfile.gettempdir())
        module = own / "kernel.py"
        module.write_text(text + compiler.host(kernels), encoding="utf-8")
        compiler.compiled(module, ARCH, kernels, own)
        return next(own.glob("*.ptx")).read_bytes()

    return _in_child(work, ARCH)


def kernel_ptx(nest: LoopNest, machine: Machine) -> str:
    """The PTX of a nest's kernels, at the sizes that the nest is tuned for."""
    one, arch = backend().lowered(nest, machine), f"sm_{machine.details['cutedsl']['arch']}"
    given, known = metadata(one.program), known_sizes(nest, one.own, dict(nest.sizes))
    source = backend().emit(nest, machine)

    def work() -> bytes:
        build.compiled(source, given, known, arch)
        return next(Path(tempfile.gettempdir()).rglob("*.ptx")).read_bytes()

    return _in_child(work, arch)


def _in_child(work: Callable[[], bytes], arch: str) -> str:
    compiler.library(arch)
    return in_child(work, 120.0, "build", Path(tempfile.gettempdir())).decode()
