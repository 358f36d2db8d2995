"""Sources that are no kernels: a build or a run refuses each, and nothing else comes of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from backends.backend import Backend, BackendError
from backends.measure import check
from ir.machine import Machine
from ir.nest.nest import LoopNest
from testing.conformance.case import SEED, Case


def hostile_sources(source: str, other: str) -> dict[str, str]:
    """Edits of a source by name. other: a source of a kernel with other tensors."""
    half = source[: len(source) // 2]
    lines = source.splitlines()
    third = len(lines) // 3  # so many that some of them have an effect
    without = "\n".join((*lines[:third], *lines[2 * third :])) + "\n"
    return {
        "nothing": "",
        "blank lines": "\n\n",
        "half of it": half,
        "words before it": f"this is no kernel ( {{\n{source}",
        "brackets without end": "(" * 100_000,
        "a zero byte": f"{half}\0{source[len(half) :]}",
        "other letters": source.replace("e", "\N{CYRILLIC SMALL LETTER IE}"),
        "lines that are gone": without,
        "another kernel": other,
    }


def hostile_problems(
    backend: Backend, machine: Machine, case: Case, other: LoopNest, folder: Path
) -> Iterator[str]:
    """Where a source that was spoiled passes, or fails as anything but a fault of the candidate."""
    nest = case.nest(machine)
    source = backend.emit(nest, machine)
    for number, (name, text) in enumerate(
        hostile_sources(source, backend.emit(other, machine)).items()
    ):
        own = folder / str(number)
        own.mkdir()
        try:
            built = backend.build(text, nest, machine, own)
            for sizes in case.workload.checks:
                check(backend, built, nest, machine, nest.spec, sizes, SEED)
        except BackendError as e:
            if not e.reason.strip():
                yield f"{name}: refused at stage {e.stage!r} without a reason"
        except Exception as e:
            yield f"{name}: {type(e).__name__} instead of a BackendError: {e}"
        else:
            yield f"{name}: it was built, and its results are right"
