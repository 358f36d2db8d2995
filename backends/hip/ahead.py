"""Precompiled parts of all kernels in the emulator: its headers and the emulator itself.

Without this they take three quarters of a small kernel's compile time.
"""

from __future__ import annotations

import hashlib
import platform
import shutil
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from backends.hip import clang
from backends.shared.kept import cache_folder, once

_CODE = ("-std=c++20", "-fPIC", "-fvisibility=hidden", "-fno-exceptions", "-fno-rtti", "-nostdinc")
_VECTORS = ("-mf16c", "-mavx2") if platform.machine() == "x86_64" else ()
_RUNTIME_FLAGS = ("-O2", *_CODE)
# The emulator implements the sanitizer's hooks before each memory access.
_SANITIZED = ("-fsanitize=thread", "-mllvm", "-tsan-instrument-func-entry-exit=0")
_KERNEL_FLAGS = ("-O1", *_CODE, "-w", *_SANITIZED, "-ffp-contract=off", *_VECTORS)
_ALL = "kernels.h"  # includes the headers of kernels
_RUNTIME = "runtime.h"
_HEADERS = '#include <hip/hip_runtime.h>\n#include "kernel.h"\n'


@dataclass(frozen=True, slots=True)
class Ahead:
    """The options for compiling a kernel."""

    digest: str  # of all its inputs
    folder: Path

    @property
    def options(self) -> tuple[str, ...]:
        """The options of clang."""
        compiled = str(self.folder / f"{_ALL}.pch")
        return ("-x", "c++", *_KERNEL_FLAGS, f"-I{self.folder}", "-include-pch", compiled)

    @property
    def code(self) -> Path:
        """The emulator's object file, for the linker."""
        return self.folder / "emulator.o"


@cache
def ahead_of_kernels() -> Ahead:
    """Compiles the headers and the emulator if necessary.

    They are cached under their digest: permanently, or for this process if files cannot be written.
    Raises BackendError("build") if the compiler fails.
    """
    files = {
        str(path.relative_to(folder)): path
        for folder in (clang.NATIVE, *clang.INCLUDE)
        for path in sorted(folder.rglob("*.h"))
    }
    state = hashlib.sha256(
        repr((clang.version(), _RUNTIME_FLAGS, _KERNEL_FLAGS, _HEADERS)).encode()
    )
    for name, path in files.items():
        state.update(name.encode() + b"\0" + path.read_bytes())
    made = Ahead(state.hexdigest()[:20], cache_folder() / f"emulator-{state.hexdigest()[:20]}")
    try:
        once(made.code, lambda: _compile(made, files))
    except OSError:  # no space, or no right to write there
        made = Ahead(made.digest, Path(tempfile.mkdtemp(prefix="emulator-")))
        _compile(made, files)
    return made


def _compile(made: Ahead, files: dict[str, Path]) -> None:
    folder = made.folder
    for name, path in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copyfile(path, folder / name)
    (folder / _ALL).write_text(_HEADERS, encoding="utf-8")
    include, compiled = f"-I{folder}", str(folder / f"{_ALL}.pch")
    headers = ("-x", "c++-header", str(folder / _ALL))
    clang.run("clang", *_KERNEL_FLAGS, include, *headers, "-o", compiled)
    part = made.code.with_suffix(".part")
    runtime = ("-x", "c++", "-c", str(folder / _RUNTIME))
    clang.run("clang", *_RUNTIME_FLAGS, include, *runtime, "-o", str(part))
    part.rename(made.code)  # renamed last: if it exists, everything exists
