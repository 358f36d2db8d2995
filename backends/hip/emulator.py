"""The emulator: a source as plain C++, each work-item of a block a fiber, on arrays of this process.

Nothing of the kernel's own memory is out of sight: `native/emulator.h` checks each access before it
happens, so that a source can be run where it is not trusted.
"""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from backends.backend import BackendError
from backends.gpu.source.launches import Call
from backends.hip import clang
from ir.digest import text_digest

FLAGS = (
    *(
        "-x",
        "c++",
        "-std=c++20",
        "-O1",
        "-fPIC",
        "-fvisibility=hidden",
        "-fno-exceptions",
        "-fno-rtti",
        "-nostdinc",
        "-w",
    ),
    *("-fsanitize=thread", "-mllvm", "-tsan-instrument-func-entry-exit=0", "-ffp-contract=off"),
    *(("-mf16c", "-mavx2") if platform.machine() == "x86_64" else ()),
)
ORDERS = (False, True)  # of threads, wavefronts and blocks: forward, reversed


class Tensor(ctypes.Structure):
    """A tensor of `native/emulator.h`."""

    _fields_ = (
        ("start", ctypes.c_void_p),
        ("bytes", ctypes.c_ulonglong),
        ("name", ctypes.c_char_p),
    )


def library(source: Path, names: Iterable[str], constants: Mapping[str, int]) -> ctypes.CDLL:
    """The kernels of a source for some constants, compiled where they are not yet.

    BackendError("build") tells the first errors with their lines.
    """
    text = source.read_text(encoding="utf-8")
    entries = "\n".join(_ENTRY.replace("NAME", name) for name in sorted(names))
    defines = [f"-D{n}={v}" for n, v in constants.items()]
    folders = (clang.NATIVE, *clang.INCLUDE)
    headers = [h.read_text(encoding="utf-8") for f in folders for h in sorted(f.glob("**/*.h"))]
    parts = (clang.version(), text, entries, *defines, *headers, *FLAGS)
    file = source.parent / f"{text_digest(chr(0).join(parts))}.so"
    if not file.exists():
        whole = file.with_suffix(".cc")
        whole.write_text(
            f'#line 1 "{source.name}"\n{text}\n{_SUPPORT}\n{entries}\n', encoding="utf-8"
        )
        made = file.with_suffix(".o")
        include = (f"-I{folder}" for folder in folders)
        clang.run("clang", *FLAGS, *include, *defines, "-c", str(whole), "-o", str(made))
        clang.run("ld.lld", "-shared", str(made), "-o", str(file))
    ctypes.CDLL("libm.so.6", mode=ctypes.RTLD_GLOBAL)
    return ctypes.CDLL(str(file))


def launch(
    kernels: ctypes.CDLL,
    call: Call,
    tensors: Sequence[tuple[str, np.ndarray]],
    reversed_order: bool,
) -> None:
    """Runs one launch on arrays, in the device's form. tensors: all that a kernel may touch, with
    their names; the call says which it takes.

    BackendError("check") names the kernel, and of its fault the kind, the block and the thread.
    """
    held = (Tensor * len(tensors))(
        *((a.ctypes.data, a.nbytes, name.encode()) for name, a in tensors)
    )
    pointers = [ctypes.c_void_p(tensors[n][1].ctypes.data) for n in call.tensors]
    values = (*pointers, *map(ctypes.c_int, call.arguments))
    given = (ctypes.c_void_p * max(1, len(values)))(*map(ctypes.addressof, values))
    kernels.emulated_tensors(held, len(tensors))
    entry = kernels[f"emulated_{call.name}"]
    entry.restype = ctypes.c_char_p
    said = entry(call.grid, call.block, call.shared, int(reversed_order), given)
    if said:
        raise BackendError("check", f"{call.name}: {said.decode(errors='replace')}")


_SUPPORT = """
extern "C" EXPORTED HIDDEN void emulated_tensors(const emulated::Tensor* given, int count) {
  emulated::tensor_count = count;
  for (int n = 0; n < count; ++n) emulated::tensors[n] = given[n];
}
"""
_ENTRY = """
extern "C" EXPORTED HIDDEN const char* emulated_NAME(int grid, int block, int shared, int reversed, void** given) {
  return emulated::launched(NAME, grid, block, shared, reversed, given);
}
"""
