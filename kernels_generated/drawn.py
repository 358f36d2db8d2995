"""Which records are evaluated each time, and which with the slow tests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from zlib import crc32

from ir.errors import KernelError
from search.record.record import RECORD, parse_record


def drawn(folders: Sequence[Path]) -> set[Path]:
    """One of each kernel's records, since the targets of a backend share its code, and so do kernels.

    The kernel's name draws the backend and the target, so that together the kernels have all.
    """
    kernels: dict[str, dict[str, list[Path]]] = defaultdict(lambda: defaultdict(list))
    for folder in sorted(folders):
        kernels[folder.parent.name][_backend(folder)].append(folder)
    found = set()
    for kernel, by_backend in kernels.items():
        draw = crc32(kernel.encode())
        # Other bits draw the backend than the target.
        records = list(by_backend.values())[draw // 128 % len(by_backend)]
        found.add(records[draw % len(records)])
    return found


def _backend(folder: Path) -> str:
    """Whose source a record keeps; its folder where the record cannot be read, as its tests say."""
    try:
        return parse_record((folder / RECORD).read_text(encoding="utf-8")).backend
    except (KernelError, OSError, UnicodeDecodeError):
        return str(folder)
