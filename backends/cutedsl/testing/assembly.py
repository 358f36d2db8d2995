"""What the compiler makes of a text, as PTX."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from backends.cutedsl import compiler
from backends.gpu.child import in_child

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
    """The PTX of a kernel with pointers `x_ptr`, `y_ptr` to types, and numbers `n0`, `n1`."""
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

    compiler.library(ARCH)
    return in_child(work, 60.0, "build", Path(tempfile.gettempdir())).decode()
