"""Files that are made once on a computer and cached."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path


def cache_folder() -> Path:
    """The folder of cached builds."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "speciate" / "native"


def once(file: Path, make: Callable[[], None]) -> Path:
    """A file that `make` creates if it does not exist. Other processes wait meanwhile."""
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        with (file.parent / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not file.exists():
                make()
    return file
