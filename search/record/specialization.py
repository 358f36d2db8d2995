"""Specializations: the kernels that a record has beside its first, and the shapes that they
share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ir.digest import text_digest
from ir.errors import KernelError
from ir.guards import Guard


@dataclass(frozen=True, slots=True)
class Tuned:
    """A shape of the workload that a record is for."""

    shape: Mapping[str, int]
    weight: float
    us: float  # the time there, microseconds, of the kernel that is run there
    kernel: int = 0  # its number, 0 for the record's first


@dataclass(frozen=True, slots=True)
class Specialization:
    """A kernel beside the record's first, which is the fallback."""

    source: str  # name of its file
    # Of its texts, the last None where the equations are the spec's own.
    schedule_digest: str
    source_digest: str
    # As in `Record`.
    freely_edited: bool = False
    lineage: tuple[str, ...] = ()
    variant_digest: str | None = None


@dataclass(frozen=True, slots=True)
class Texts:
    """What a kernel is made of."""

    schedule: str
    source: str
    # The equations that the schedule is for; None where they are the spec's own.
    variant: str | None = None


def numbered(name: str, kernel: int) -> str:
    """The file of a kernel by its number: `kernel.txt`, `kernel_1.txt`."""
    stem, _, ending = name.partition(".")
    return f"{stem}_{kernel}.{ending}" if kernel else name


def tuned(tables: list[dict[str, Any]]) -> tuple[Tuned, ...]:
    """The shapes that a record's text lists."""
    return tuple(Tuned(**{**t, "shape": dict(t["shape"])}) for t in tables)


def specializations(tables: list[dict[str, Any]]) -> tuple[Specialization, ...]:
    """The specializations that a record's text lists."""
    return tuple(Specialization(**{**t, "lineage": tuple(t.get("lineage", ()))}) for t in tables)


def guards(tables: list[dict[str, Any]]) -> tuple[Guard, ...]:
    """The guards that a record's text lists."""
    return tuple(Guard(dict(t["near"]), int(t["kernel"])) for t in tables)


def require_whole(
    made: tuple[Specialization, ...],
    listed: tuple[Guard, ...],
    shapes: tuple[Tuned, ...],
    sizes: Mapping[str, int],
) -> None:
    """KernelError where a guard or a shape names a kernel or sizes that are not there."""
    for number in (*(guard.kernel for guard in listed), *(shape.kernel for shape in shapes)):
        if not 0 <= number <= len(made):
            raise KernelError(f"there is no kernel {number}", allowed=f"0 to {len(made)}")
    for guard in listed:
        if set(guard.near) != set(sizes) or min(guard.near.values()) < 1:
            raise KernelError(
                f"a guard is near {dict(guard.near)}",
                allowed=f"a number of 1 or more for each of {', '.join(sizes)}",
            )


def digest_of(text: str | None) -> str | None:
    """The digest of a text; None where there is none."""
    return None if text is None else text_digest(text)


def edited(
    made: tuple[Specialization, ...], texts: tuple[Texts, ...], schedule: str, variant: str
) -> list[str]:
    """The files of specializations that are not what their digests say. schedule, variant: names of
    the first kernel's."""
    found = []
    for number, (specialization, text) in enumerate(zip(made, texts, strict=True), 1):
        if text_digest(text.schedule) != specialization.schedule_digest:
            found.append(numbered(schedule, number))
        if text_digest(text.source) != specialization.source_digest:
            found.append(specialization.source)
        if digest_of(text.variant) != specialization.variant_digest:
            found.append(numbered(variant, number))
    return found
