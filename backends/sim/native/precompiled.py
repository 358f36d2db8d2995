"""The device interface compiled ahead of kernels: most of a small kernel's build is its header."""

import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from backends.sim.native.load import cache_folder, device_include, once

HEADER = "device.h"


@functools.cache
def kernel_include(compiler: str, flags: tuple[str, ...]) -> Path:
    """The directory for `-I` of kernels built with these flags: the header, compiled beforehand.

    It is compiled once, and kept by the digest of the header, the compiler and the flags. Where
    that cannot be, it is the header's own directory: kernels are the same, and build more slowly.
    """
    found = shutil.which(compiler)
    if found is None:
        return device_include()  # whoever builds says what is missing
    said = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout
    header = (device_include() / HEADER).read_bytes()
    state = hashlib.sha256(repr((found, said, flags)).encode() + header)
    folder = cache_folder() / f"device-{state.hexdigest()[:20]}"
    compiled = folder / f"{HEADER}.gch"
    try:
        once(compiled, lambda: _compile(found, flags, compiled))
    except OSError:  # no room, or no right to write there
        return device_include()
    return folder if compiled.exists() else device_include()


def _compile(compiler: str, flags: tuple[str, ...], compiled: Path) -> None:
    """Leaves nothing at `compiled` where the compiler refuses."""
    folder = compiled.parent
    shutil.copyfile(device_include() / HEADER, folder / HEADER)
    with tempfile.TemporaryDirectory(dir=folder) as work:
        out = Path(work) / compiled.name
        command = [compiler, *flags, "-x", "c++-header", HEADER, "-o", str(out)]
        if not subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode:
            os.replace(out, compiled)
