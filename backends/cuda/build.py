"""Building CUDA C++: the headers and options that NVRTC gets along with a source."""

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
# Divisions and square roots have an error of up to two units in the last place. No other fast arithmetic.
OPTIONS = (
    *("--std=c++20", "--device-as-default-execution-space", "--prec-div=false"),
    *("--prec-sqrt=false", "--extra-device-vectorization", "--restrict"),
)


def compiled(source: str, given: Launches, sizes: Mapping[str, int], arch: str) -> bytes:
    """The cubin of a source. given: its launches, sizes: those that set the source's constants."""
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
    """Compiles a source alone, for the sizes that it is tuned for, and writes the cubin."""
    text = source.read_text(encoding="utf-8")
    to.write_bytes(_cubin(text, source.name, LANGUAGE.arch(machine)))
