"""Clang without ROCm: the compiler of the package ziglang, with AMD's device library of Triton's
package."""

from __future__ import annotations

import importlib.util
import re
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from backends.backend import BackendError
from backends.shared.compiler import require_not_killed
from backends.shared.diagnostics import first_errors
from ir.machine import Machine

HERE = Path(__file__).parent
INCLUDE = (HERE, HERE.parent / "gpu" / "source")  # kernel.h, prelude.h
DEVICE, NATIVE = HERE / "device", HERE / "native"  # <hip/hip_runtime.h> for the GPU and for the CPU
# Divisions and roots are accurate to a few units in the last place, as in CUDA builds.
CODE_FLAGS = (
    *("-std=c++20", "-O3", "-ffp-contract=fast-honor-pragmas", "-fno-unroll-loops"),
    *("-fno-hip-fp32-correctly-rounded-divide-sqrt", "-Wno-pass-failed"),
)
DEVICE_FLAGS = (  # for each architecture
    *("-x", "hip", "--offload-device-only", "--no-gpu-bundle-output", "-nogpulib", "-nogpuinc"),
    *("-fuse-cuid=none", "-mcode-object-version=5", "-S"),
    *CODE_FLAGS,
)


def headers() -> list[Path]:
    """The headers that a source includes, besides HIP's."""
    return [header for folder in INCLUDE for header in sorted(folder.glob("*.h"))]


@cache
def command() -> Path | None:
    """The program with clang and lld; None if it is not installed."""
    spec = importlib.util.find_spec("ziglang")
    found = Path(spec.origin).parent / "zig" if spec and spec.origin else None
    return found if found and found.exists() else None


@cache
def device_library() -> Path | None:
    """AMD's float functions as bitcode; None if Triton is not installed."""
    spec = importlib.util.find_spec("triton")
    if spec is None or spec.origin is None:
        return None
    found = Path(spec.origin).parent / "backends" / "amd" / "lib" / "ocml.bc"
    return found if found.exists() else None


@cache
def version() -> str:
    """The name and version; empty if something is not installed."""
    if command() is None or device_library() is None:
        return ""
    done = subprocess.run([str(command()), "clang", "--version"], capture_output=True, text=True)
    found = re.search(r"clang version (\S+)", done.stdout)
    return f"clang {found[1]}" if found else ""


def assembly(source: Path, architecture: str, defines: Sequence[str], to: Path) -> str:
    """The assembly of a source for an architecture, which is also written to a file.

    Raises BackendError("build") with the first errors and their lines.
    """
    library = ("-Xclang", "-mlink-builtin-bitcode", "-Xclang", str(device_library()))
    headers = (f"-I{folder}" for folder in (DEVICE, *INCLUDE))
    run(
        *("clang", *DEVICE_FLAGS, f"--offload-arch={architecture}", *headers, *library),
        *defines,
        *(str(source), "-o", str(to)),
    )
    return to.read_text(encoding="utf-8")


def code_object(assembly: Path, architecture: str, to: Path) -> None:
    """Assembles and links the code object for the driver."""
    part = to.with_suffix(".o")
    run(
        "clang",
        "-target",
        "amdgcn-amd-amdhsa",
        f"-mcpu={architecture}",
        "-c",
        str(assembly),
        "-o",
        str(part),
    )
    run("ld.lld", "-shared", str(part), "-o", str(to))
    part.unlink()


def compile_source(source: Path, machine: Machine, to: Path) -> None:
    """The code object of a source by itself, for the sizes that it is tuned for."""
    architecture = machine.details["hip"]["arch"]
    text = to.with_suffix(".s")
    assembly(source, architecture, (), text)
    code_object(text, architecture, to)
    text.unlink()


def run(*words: str) -> None:
    """Runs a tool. Raises BackendError("build") with its first errors."""
    tool = command()
    if tool is None:
        raise BackendError("build", "there is no clang; install ziglang")
    done = subprocess.run([str(tool), *words], capture_output=True, text=True)
    if done.returncode:
        require_not_killed(tool.name, done)
        raise BackendError("build", first_errors(done.stderr) or done.stderr[-400:])
