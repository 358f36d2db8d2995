"""Places the files of a record atomically, even if the process is killed.

All files are first written next to the place, in a dot folder. Renaming that folder to
`.NAME.ready` commits: before it nothing has changed; after it the next process that places or
recovers completes the work.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

NEW, OLD, BESIDE = "new", "old", "beside"


def place(folder: Path, files: Mapping[str, str], beside: Mapping[str, str]) -> None:
    """Replaces a folder by one with exactly these files, and replaces files next to it.

    Raises OSError if that fails; then nothing has changed. files, beside: texts by name.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _alone(folder.parent):
        _recovered(folder)
        draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        try:
            _write(draft / NEW, files)
            _write(draft / BESIDE, beside)
            os.rename(draft, _ready(folder))
        except OSError:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        _finish(folder)


def recover(folder: Path) -> None:
    """Completes or removes what a killed process left for a folder."""
    if folder.parent.is_dir():
        with _alone(folder.parent):
            _recovered(folder)


def _ready(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.ready")


def _write(folder: Path, files: Mapping[str, str]) -> None:
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


def _recovered(folder: Path) -> None:
    """The same as `recover`, while no other process does it."""
    if _ready(folder).exists():
        _finish(folder)
    for left in folder.parent.glob(f".{folder.name}-*"):
        shutil.rmtree(left, ignore_errors=True)


def _finish(folder: Path) -> None:
    """Completes a ready folder. Steps that are already done are skipped."""
    ready = _ready(folder)
    new, old = ready / NEW, ready / OLD
    try:
        if new.exists():
            if folder.exists() and not old.exists():
                os.rename(folder, old)
            os.rename(new, folder)
        for file in sorted((ready / BESIDE).iterdir()):
            os.replace(file, folder.parent / file.name)
    except OSError:
        if old.exists():
            if folder.exists():
                os.rename(folder, new)
            os.rename(old, folder)
        shutil.rmtree(ready, ignore_errors=True)
        raise
    # A name that no process completes, because files are removed one by one.
    done = ready.with_name(f".{folder.name}-done")
    shutil.rmtree(done, ignore_errors=True)
    os.rename(ready, done)
    shutil.rmtree(done, ignore_errors=True)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """A context that excludes other processes from placing anything in a folder."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
