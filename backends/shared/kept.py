"""Files that are made once on a computer and kept."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path


def cache_folder() -> Path:
    """Where what is compiled once is kept."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "speciate" / "native"


def once(file: Path, make: Callable[[], None]) -> Path:
    """A file that `make` writes where it is not there yet; other processes wait meanwhile."""
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        with (file.parent / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not file.exists():
                make()
    return file
