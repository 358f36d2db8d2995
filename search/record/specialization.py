"""Specializations: further kernels of a record, and the shapes that the kernels share."""

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
    us: float  # time in microseconds of the kernel that runs there
    kernel: int = 0  # number of that kernel; 0 for the record's first


@dataclass(frozen=True, slots=True)
class Specialization:
    """A further kernel of a record. The record's first kernel is the fallback."""

    source: str  # file name of its source
    # Digests of its texts. `variant_digest` is None if the equations are the spec's own.
    schedule_digest: str
    source_digest: str
    # The same as in `Record`.
    freely_edited: bool = False
    lineage: tuple[str, ...] = ()
    variant_digest: str | None = None


@dataclass(frozen=True, slots=True)
class Texts:
    """The texts of a kernel."""

    schedule: str
    source: str
    # The equations that the schedule is for; None if they are the spec's own.
    variant: str | None = None


def numbered(name: str, kernel: int) -> str:
    """The file name of a kernel by its number: `kernel.txt`, `kernel_1.txt`."""
    stem, _, ending = name.partition(".")
    return f"{stem}_{kernel}.{ending}" if kernel else name


def tuned(tables: list[dict[str, Any]]) -> tuple[Tuned, ...]:
    """The shapes in a record's text."""
    return tuple(Tuned(**{**t, "shape": dict(t["shape"])}) for t in tables)


def specializations(tables: list[dict[str, Any]]) -> tuple[Specialization, ...]:
    """The specializations in a record's text."""
    return tuple(Specialization(**{**t, "lineage": tuple(t.get("lineage", ()))}) for t in tables)


def guards(tables: list[dict[str, Any]]) -> tuple[Guard, ...]:
    """The guards in a record's text."""
    return tuple(Guard(dict(t["near"]), int(t["kernel"])) for t in tables)


def require_whole(
    made: tuple[Specialization, ...],
    listed: tuple[Guard, ...],
    shapes: tuple[Tuned, ...],
    sizes: Mapping[str, int],
) -> None:
    """Raises KernelError if a guard or a shape refers to a missing kernel or size."""
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
    """The digest of a text; None if there is none."""
    return None if text is None else text_digest(text)


def edited(
    made: tuple[Specialization, ...], texts: tuple[Texts, ...], schedule: str, variant: str
) -> list[str]:
    """The files of specializations that do not match their digests. schedule, variant: file names
    of the first kernel."""
    found = []
    for number, (specialization, text) in enumerate(zip(made, texts, strict=True), 1):
        if text_digest(text.schedule) != specialization.schedule_digest:
            found.append(numbered(schedule, number))
        if text_digest(text.source) != specialization.source_digest:
            found.append(specialization.source)
        if digest_of(text.variant) != specialization.variant_digest:
            found.append(numbered(variant, number))
    return found
