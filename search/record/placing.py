"""Files of a record put in their place, whole or not at all, whenever the process is killed.

All files are first written beside the place, in a dot folder. Renaming that folder to `.NAME.ready`
decides: before it, nothing has changed; after it, whoever places or recovers next finishes the work.
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
    """Makes a folder have some files and no others, and replaces files beside it; OSError where that
    fails, and then nothing has changed.

    files, beside: texts by name.
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
    """Finishes or removes what a killed process left of a folder."""
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
    """As `recover`, where no other process is at it."""
    if _ready(folder).exists():
        _finish(folder)
    for left in folder.parent.glob(f".{folder.name}-*"):
        shutil.rmtree(left, ignore_errors=True)


def _finish(folder: Path) -> None:
    """Does what a ready folder says. Each step is left out where it was done before."""
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
    # A name that nothing finishes, before its files go one by one.
    done = ready.with_name(f".{folder.name}-done")
    shutil.rmtree(done, ignore_errors=True)
    os.rename(ready, done)
    shutil.rmtree(done, ignore_errors=True)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """A context in which no other process places anything in a folder."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
