"""CuTe DSL's compiler as a library: it makes a cubin of a module's kernels, without a GPU or a
driver.

The DSL compiles a host function that launches the kernels; the host function never runs. Kernel
parameters are pointers, then tensor maps of 128 bytes, then numbers of 32 bits, as in CUDA C++
kernels.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from backends.backend import BackendError

PACKAGE, MODULE = "nvidia-cutlass-dsl-libs-cu13", "cutlass"
FOLDER = "nvidia_cutlass_dsl"  # folder of the package; its modules are below it
MISSING = f"there is no CuTe DSL; install {PACKAGE}"
# Read when the library is imported and when it compiles. Without CUTE_DSL_ARCH the library asks the
# driver, and silently takes sm_100a if there is no driver.
SETTINGS = {
    "CUTE_DSL_ARCH": "",
    "CUTE_DSL_KEEP": "ptx,cubin",
    "CUTE_DSL_NO_CACHE": "1",
    "CUTE_DSL_DISABLE_FILE_CACHING": "1",
}
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
SAID = "backends.cutedsl.kernel"  # the package name that sources import
_FROM = 128  # the alignment of pointers in bytes; torch aligns tensors to 256


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel, as its host function launches it."""

    name: str
    threads: int
    shared: int  # bytes
    pointers: tuple[str, ...]  # element types, as CuTe DSL names them
    maps: int
    numbers: int
    registers: int = 0  # limit per thread; 0: the compiler decides


def version() -> str:
    """The compiler's name and version; empty where it is not installed."""
    try:
        return f"cutedsl {metadata.version(PACKAGE)}"
    except metadata.PackageNotFoundError:
        return ""


def library(arch: str) -> Any:
    """The library, set to an architecture. BackendError if it is not installed."""
    os.environ.update(SETTINGS | {"CUTE_DSL_ARCH": arch})
    spec = importlib.util.find_spec(FOLDER)
    for folder in spec.submodule_search_locations or () if spec else ():
        modules = str(Path(folder) / "dsl_packages")
        if modules not in sys.path:
            sys.path.append(modules)
    try:
        return importlib.import_module(MODULE)
    except ImportError as error:
        raise BackendError("build", f"{MISSING}: {error}") from None


def host(kernels: Sequence[Kernel]) -> str:
    """The text of a module's host function."""
    parameters, lines = [], []
    for n, kernel in enumerate(kernels):
        pointers = [f"p{n}_{i}" for i in range(len(kernel.pointers))]
        maps = [f"m{n}_{i}" for i in range(kernel.maps)]
        numbers = [f"n{n}_{i}" for i in range(kernel.numbers)]
        parameters += [f"{p}: cute.Pointer" for p in pointers]
        parameters += [f"{m}: cute.Tensor" for m in maps]
        parameters += [f"{x}: Int32" for x in numbers]
        lines += [
            f"    {m} = cute.nvgpu.cpasync.make_tiled_tma_atom("
            "cute.nvgpu.cpasync.CopyBulkTensorTileG2SOp(), "
            f"{m}, cute.make_layout((8, 64), stride=(64, 1)), (8, 64))[0]"
            for m in maps
        ]
        lines.append(
            f"    {kernel.name}({', '.join(pointers + maps + numbers)}).launch("
            f"grid=[1, 1, 1], block=[{kernel.threads}, 1, 1], smem={kernel.shared})"
        )
    head = f"@cute.jit\ndef launch_all({', '.join(parameters)}):"
    return "\n".join(["\n", head, *lines, ""])


def compiled(file: Path, arch: str, kernels: Sequence[Kernel], folder: Path) -> bytes:
    """The cubin of a module's kernels. BackendError("build") says why there is none.

    file: the module with the host function.
    folder: receives what the compiler writes.
    """
    os.environ["CUTE_DSL_DUMP_DIR"] = str(folder)
    cutlass = library(arch)
    cute = importlib.import_module("cutlass.cute")
    # The process that forked this one may have loaded the library for another architecture.
    dsl = cutlass.cutlass_dsl.CuTeDSL._get_dsl()
    dsl.envar.arch = arch
    dsl.envar.dump_dir = str(folder)
    _limit_registers(dsl, [kernel.registers for kernel in kernels])
    os.chdir(folder)
    try:
        module = _module(file)
        for n, kernel in enumerate(kernels):
            prefix, _, number = kernel.name.rpartition("_")
            if number != str(n):  # what the DSL appends to a kernel's name
                raise BackendError("build", f"launch {n} is called `{kernel.name}`")
            getattr(module, kernel.name).set_name_prefix(
                prefix, remove_cutlass_symbol=True, keep_mangled_name=False
            )
        arguments = [a for kernel in kernels for a in _arguments(kernel, cutlass)]
        return cute.compile(module.launch_all, *arguments).__cubin__
    except BackendError:
        raise
    except Exception as error:
        raise BackendError("build", _told(error)) from None


def _limit_registers(dsl: Any, limits: Sequence[int]) -> None:
    """Limits the registers of kernels, in the order of their launches. CuTe DSL launches have no such option."""
    attributes, left = type(dsl)._generate_kernel_attrs, iter(limits)
    parse = importlib.import_module("cutlass._mlir.ir").Attribute.parse

    def limited(config: Any) -> dict[str, Any]:
        limit = next(left)
        return attributes(dsl, config) | (
            {"nvvm.maxnreg": parse(f"{limit} : i32")} if limit else {}
        )

    dsl._generate_kernel_attrs = limited


def _told(error: Exception) -> str:
    """An error's message without colours and empty lines."""
    text = _COLOURS.sub("", str(error) or type(error).__name__)
    return " ".join(line.strip() for line in text.splitlines() if line.strip())[:900]


def _module(file: Path) -> Any:
    """Imports a module from its file, which the DSL reads again.

    The module says `from backends.cutedsl.kernel import *`. That also works if the project is
    installed and this package is below another one.
    """
    if __package__ and __package__ not in SAID:
        sys.modules[SAID] = importlib.import_module(f"{__package__}.kernel")
    spec = importlib.util.spec_from_file_location("kernels_" + file.stem, file)
    if spec is None or spec.loader is None:
        raise BackendError("build", f"{file.name} is no module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _arguments(kernel: Kernel, cutlass: Any) -> list[Any]:
    """Placeholder arguments for those of a kernel."""
    runtime, cute = importlib.import_module("cutlass.cute.runtime"), cutlass.cute
    gmem = cute.AddressSpace.gmem
    pointers = [
        runtime.make_ptr(getattr(cutlass, t), _FROM, gmem, assumed_align=_FROM)
        for t in kernel.pointers
    ]
    maps = [
        runtime.make_fake_compact_tensor(
            cutlass.Float16,
            (cute.sym_int(), cute.sym_int(divisibility=8)),
            stride_order=(1, 0),
            assumed_align=16,
        )
        for _ in range(kernel.maps)
    ]
    return [*pointers, *maps, *(cutlass.Int32(1) for _ in range(kernel.numbers))]
