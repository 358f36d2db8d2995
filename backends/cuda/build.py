"""Building CUDA C++: what NVRTC is given beside a source."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from backends.cuda import nvrtc
from backends.gpu.cubins.build import Language, Launches
from backends.gpu.source.launches import constants
from ir.machine import Machine

FILE = "kernel.cu"
HERE = Path(__file__).parent
HEADERS = {  # by the names that sources include
    f.name: f
    for f in (
        *(HERE / "kernel.h", HERE / "ptx.h"),
        *(HERE.parent / "gpu" / "source" / n for n in ("eight.h", "prelude.h")),
    )
}
# Divisions and roots within two units of the last place; no other fast arithmetic.
OPTIONS = (
    *("--std=c++20", "--device-as-default-execution-space", "--prec-div=false"),
    *("--prec-sqrt=false", "--extra-device-vectorization", "--restrict"),
)


def compiled(source: str, given: Launches, sizes: Mapping[str, int], arch: str) -> bytes:
    """The cubin of a source with its launches, for the constants at some sizes."""
    defines = (f"-D{name}={number}" for name, number in constants(given, sizes).items())
    return _cubin(source, FILE, arch, *defines)


def _cubin(source: str, name: str, arch: str, *defines: str) -> bytes:
    headers = {n: file.read_text(encoding="utf-8") for n, file in HEADERS.items()}
    options = (f"--gpu-architecture={arch}", *OPTIONS, *defines)
    return nvrtc.compiled(source, name, headers, options)


LANGUAGE = Language(
    file=FILE,
    table="cuda",
    missing=nvrtc.MISSING,
    seconds=60.0,
    memory=4 << 30,
    version=nvrtc.version,
    load=lambda arch: nvrtc.library(),
    compile=compiled,
)


def compile_source(source: Path, machine: Machine, to: Path) -> None:
    """The cubin of a source alone, for the sizes that it is tuned for."""
    text = source.read_text(encoding="utf-8")
    to.write_bytes(_cubin(text, source.name, LANGUAGE.arch(machine)))
