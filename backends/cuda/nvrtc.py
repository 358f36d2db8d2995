"""NVRTC, NVIDIA's run-time compiler, as a library. It needs neither a GPU nor a driver."""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from backends.backend import BackendError
from backends.shared.diagnostics import first_errors

MISSING = "there is no NVRTC; install nvidia-cuda-nvrtc"
LIBRARY = "cu*/lib/libnvrtc.so.*"  # in the package `nvidia`


@cache
def library() -> ctypes.CDLL | None:
    """The loaded library; None where it is not installed."""
    spec = importlib.util.find_spec("nvidia")
    folders = spec.submodule_search_locations if spec else None
    files = [
        f for folder in folders or () for f in Path(folder).glob(LIBRARY) if ".alt." not in f.name
    ]
    for file in sorted(files, reverse=True):
        for builtins in file.parent.glob("libnvrtc-builtins.so.*"):
            # NVRTC opens the builtins library by its bare file name, which finds a library that is
            # already loaded.
            ctypes.CDLL(str(builtins))
        found = ctypes.CDLL(str(file))
        found.nvrtcGetErrorString.restype = ctypes.c_char_p
        return found
    return None


def version() -> str:
    """NVRTC's name and version; empty where it is not installed."""
    found = library()
    if found is None:
        return ""
    major, minor = ctypes.c_int(), ctypes.c_int()
    found.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return f"nvrtc {major.value}.{minor.value}"


def compiled(source: str, name: str, headers: Mapping[str, str], options: Sequence[str]) -> bytes:
    """The cubin of a source. BackendError("build") gives the first errors with their lines.

    name: of the source, in messages.
    headers: their texts by the names that the source includes.
    """
    nvrtc = library()
    if nvrtc is None:
        raise BackendError("build", MISSING)
    program = ctypes.c_void_p()
    texts, names = (_strings(part) for part in (headers.values(), headers))
    _require(
        nvrtc,
        nvrtc.nvrtcCreateProgram(
            ctypes.byref(program), source.encode(), name.encode(), len(headers), texts, names
        ),
    )
    try:
        failed = nvrtc.nvrtcCompileProgram(program, len(options), _strings(options))
        if failed:
            log = _data(nvrtc, program, "ProgramLog").decode(errors="replace")
            raise BackendError("build", first_errors(log) or _words(nvrtc, failed))
        return _data(nvrtc, program, "CUBIN")
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _data(nvrtc: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    _require(nvrtc, getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
    data = ctypes.create_string_buffer(max(1, size.value))
    _require(nvrtc, getattr(nvrtc, f"nvrtcGet{what}")(program, data))
    return data.raw.rstrip(b"\0") if what == "ProgramLog" else data.raw


def _strings(texts: Any) -> Any:
    encoded = [t.encode() for t in texts]
    return (ctypes.c_char_p * max(1, len(encoded)))(*encoded)


def _require(nvrtc: ctypes.CDLL, failed: int) -> None:
    if failed:
        raise BackendError("build", _words(nvrtc, failed))


def _words(nvrtc: ctypes.CDLL, failed: int) -> str:
    return nvrtc.nvrtcGetErrorString(failed).decode()
