"""Precompiled headers: compiling the header is most of a small kernel's build."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from backends.shared.kept import cache_folder, once


@functools.cache
def precompiled(
    compiler: str, flags: tuple[str, ...], folders: tuple[Path, ...], header: str
) -> tuple[Path, ...]:
    """The folders for `-I` of kernels that include a header: a folder with the precompiled header
    and copies of all headers.

    It is compiled once, and cached under the digest of the headers, the compiler and the flags. If
    that is impossible, the result is `folders`: kernels are the same, but builds are slower.
    """
    found = shutil.which(compiler)
    if found is None:
        return folders  # the build reports what is missing
    said = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout
    headers = [h for folder in folders for h in sorted(folder.glob("*.h"))]
    state = hashlib.sha256(repr((found, said, flags, header)).encode())
    for one in headers:
        state.update(one.name.encode() + b"\0" + one.read_bytes())
    kept = cache_folder() / f"{Path(header).stem}-{state.hexdigest()[:20]}"
    compiled = kept / f"{header}.gch"
    try:
        once(compiled, lambda: _compile(found, flags, headers, compiled))
    except OSError:  # no space, or no right to write there
        return folders
    return (kept,) if compiled.exists() else folders


def _compile(compiler: str, flags: tuple[str, ...], headers: list[Path], compiled: Path) -> None:
    """Precompiles a header; creates no file if the compiler fails."""
    folder = compiled.parent
    for one in headers:
        shutil.copyfile(one, folder / one.name)
    with tempfile.TemporaryDirectory(dir=folder) as work:
        out = Path(work) / compiled.name
        command = [compiler, *flags, "-x", "c++-header", compiled.stem, "-o", str(out)]
        if not subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode:
            os.replace(out, compiled)
