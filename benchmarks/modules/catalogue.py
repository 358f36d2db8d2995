"""The twenty modules."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.modules import layers, plain, vision
from benchmarks.modules.entry import Entry
from ir.errors import KernelError
from ir.source import near

ENTRIES: Mapping[str, Entry] = {
    e.name: e for e in (*layers.ENTRIES, *vision.ENTRIES, *plain.ENTRIES)
}
# Modules that take long to compile. They start first.
LONG = ("resnet50", "densenet121_block", "resnet18", "mobilenet_v2_stage", "lstm")


def chosen(only: str) -> list[Entry]:
    """Parses names of modules separated by commas, in the order in which they start.

    Empty means all. Raises KernelError for an unknown name.
    """
    names = [name.strip() for name in only.split(",") if name.strip()]
    for name in names:
        if name not in ENTRIES:
            raise KernelError(
                f"there is no module `{name}`",
                where="--only",
                allowed=", ".join(ENTRIES),
                hint=near(name, ENTRIES),
            )
    order = dict.fromkeys((*LONG, *ENTRIES))
    return [ENTRIES[name] for name in order if name in names or not names]
