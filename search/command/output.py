"""Output files that a user names: refused before a search if they cannot be written."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from ir.errors import KernelError


def require_writable(option: str, file: Path) -> None:
    """KernelError where a file could not be written."""
    folder = file.parent
    if file.is_dir():
        what, hint = f"`{file}` is a folder", "name a file in it"
    elif not folder.is_dir():
        what, hint = f"the folder `{folder}` is not there", "make it first"
    elif not os.access(file if file.exists() else folder, os.W_OK):
        what, hint = f"`{file}` cannot be written", "name a file that you may write"
    else:
        return
    raise KernelError(what, where=option, hint=hint)


def require_folder(option: str, folder: Path) -> None:
    """KernelError where files could not be written into a folder, which need not be there yet."""
    place = folder
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_dir():
        what, hint = f"`{place}` is a file", "name a folder"
    elif not os.access(place, os.W_OK | os.X_OK):
        what, hint = f"`{place}` cannot be written to", "name a folder that you may write to"
    else:
        return
    raise KernelError(what, where=option, hint=hint)


def write(option: str, file: Path, data: bytes) -> None:
    """Writes a file whole or not at all; KernelError where that fails."""
    try:
        handle, beside = tempfile.mkstemp(prefix=f".{file.name}-", dir=file.parent)
        try:
            with os.fdopen(handle, "wb") as out:
                out.write(data)
            os.chmod(beside, 0o644)
            os.replace(beside, file)
        except OSError:
            os.unlink(beside)
            raise
    except OSError as error:
        raise KernelError(
            f"`{file}` cannot be written: {error.strerror}",
            where=option,
            hint="name a file that you may write",
        ) from error
