"""Which records are evaluated each time, and which with the slow tests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from zlib import crc32

from ir.errors import KernelError
from search.record.record import RECORD, parse_record


def drawn(folders: Sequence[Path]) -> set[Path]:
    """Of each kernel's records one for each backend, since the targets of a backend share its code.

    The kernel's name draws the target, so that together the kernels have all targets.
    """
    alike: dict[tuple[str, str], list[Path]] = defaultdict(list)
    for folder in sorted(folders):
        alike[folder.parent.name, _backend(folder)].append(folder)
    return {those[crc32(kernel.encode()) % len(those)] for (kernel, _), those in alike.items()}


def _backend(folder: Path) -> str:
    """Whose source a record keeps; its folder where the record cannot be read, as its tests say."""
    try:
        return parse_record((folder / RECORD).read_text(encoding="utf-8")).backend
    except (KernelError, OSError, UnicodeDecodeError):
        return str(folder)
