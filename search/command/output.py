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
