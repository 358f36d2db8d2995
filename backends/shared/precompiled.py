"""Headers compiled ahead of kernels: most of a small kernel's build is its header."""

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
    """The folders for `-I` of kernels that begin with a header: one in which it is compiled
    beforehand, beside copies of all headers.

    It is compiled once, and kept by the digest of the headers, the compiler and the flags. Where
    that cannot be, they are `folders`: kernels are the same, and build more slowly.
    """
    found = shutil.which(compiler)
    if found is None:
        return folders  # whoever builds says what is missing
    said = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout
    headers = [h for folder in folders for h in sorted(folder.glob("*.h"))]
    state = hashlib.sha256(repr((found, said, flags, header)).encode())
    for one in headers:
        state.update(one.name.encode() + b"\0" + one.read_bytes())
    kept = cache_folder() / f"{Path(header).stem}-{state.hexdigest()[:20]}"
    compiled = kept / f"{header}.gch"
    try:
        once(compiled, lambda: _compile(found, flags, headers, compiled))
    except OSError:  # no room, or no right to write there
        return folders
    return (kept,) if compiled.exists() else folders


def _compile(compiler: str, flags: tuple[str, ...], headers: list[Path], compiled: Path) -> None:
    """Leaves nothing at `compiled` where the compiler refuses."""
    folder = compiled.parent
    for one in headers:
        shutil.copyfile(one, folder / one.name)
    with tempfile.TemporaryDirectory(dir=folder) as work:
        out = Path(work) / compiled.name
        command = [compiler, *flags, "-x", "c++-header", compiled.stem, "-o", str(out)]
        if not subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode:
            os.replace(out, compiled)
