"""The file of a `ModelNew`: what is wrong with a wish for one, told before a search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from backends.backend import Backend
from ir.errors import KernelError
from search.command.output import require_writable

OPTION = "--model-new"
IMPORTED = "py"  # the extension of sources that Python imports


def require_new(file: Path, overwrite: bool) -> None:
    """KernelError where the file could not be written, or is there and may not be replaced."""
    require_writable(OPTION, file)
    if file.exists() and not overwrite:
        raise KernelError(
            f"`{file}` is there already",
            where=OPTION,
            hint="name another file, or give --overwrite to replace it",
        )


def require_own(left: Sequence[str]) -> None:
    """KernelError where operators are left to PyTorch."""
    if left:
        raise KernelError(
            f"a `ModelNew` calls kernels alone, and `{left[0]}` is left to PyTorch",
            where=OPTION,
            hint="leave it out, or --allow-torch",
        )


def require_imported(backends: Mapping[str, Backend]) -> None:
    """KernelError where there is not one target, with sources that Python imports.

    backends: by target.
    """
    if len(backends) != 1:
        raise KernelError(
            f"a `ModelNew` runs on one target, not on {len(backends)}",
            where=OPTION,
            hint="name one with --target",
        )
    for target, backend in backends.items():
        if backend.manifest.extension != IMPORTED:
            raise KernelError(
                f"kernels for `{target}` are {backend.manifest.language}, which a file of Python "
                "cannot hold",
                where=OPTION,
                allowed=f"a target whose sources are .{IMPORTED} files",
                hint="leave it out, or name another target",
            )
