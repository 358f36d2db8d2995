"""The device interface compiled ahead of kernels: most of a small kernel's build is its header."""

import fcntl
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from backends.sim.native.load import cache_folder, device_include

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
    header = device_include() / HEADER
    state = hashlib.sha256(repr((found, said, flags)).encode() + header.read_bytes())
    folder = cache_folder() / f"device-{state.hexdigest()[:20]}"
    try:
        return _made(found, flags, header, folder)
    except OSError:  # no room, or no right to write there
        return device_include()


def _made(compiler: str, flags: tuple[str, ...], header: Path, folder: Path) -> Path:
    compiled = folder / f"{HEADER}.gch"
    if compiled.exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not compiled.exists():
            shutil.copyfile(header, folder / HEADER)
            with tempfile.TemporaryDirectory(dir=folder) as work:
                out = Path(work) / compiled.name
                command = [compiler, *flags, "-x", "c++-header", HEADER, "-o", str(out)]
                done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
                if done.returncode:
                    return device_include()
                os.replace(out, compiled)
    return folder
