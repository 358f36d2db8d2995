"""The identity of a candidate's source: equal for candidates with the same program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from backends.served import Served
from ir.digest import text_digest
from ir.nest.nest import LoopNest
from search.core.candidate import Candidate
from search.core.lowered import nest_of, spec_of
from search.core.workload import WeightedShape, widest


@dataclass(frozen=True, slots=True)
class SourceIdentity:
    """Emits a candidate's source without evaluating it."""

    served: Mapping[str, Served]  # by backend name
    # The timed shapes. The source is emitted for the widest, as in an evaluation.
    shapes: tuple[WeightedShape, ...]

    def __call__(self, candidate: Candidate) -> str:
        """The identity; empty if unknown: for an edited source, or if nothing can be emitted."""
        if candidate.source is not None:
            return ""
        try:
            one = self.served[candidate.backend]
            backend, machine = one.backend, one.machine
            nests = [nest_of(candidate, machine, shape.sizes) for shape in self.shapes]
            sizes = widest(spec_of(candidate.variant), machine, self.shapes)
            nest = nests[[shape.sizes for shape in self.shapes].index(sizes)]
            source = backend.emit(nest, machine)
        except Exception:  # the candidate's evaluation reports any fault, in a sandbox
            return ""
        # A source contains the digest of its schedule, which has no effect.
        said = source.replace(text_digest(candidate.schedule), "")
        return text_digest(
            "\n".join((candidate.backend, candidate.variant, said, *map(_launched, nests)))
        )


def _launched(nest: LoopNest) -> str:
    """The properties that a kernel's host code takes from the nest and not from the source."""
    parts: Sequence[object] = [
        (launch.name, launch.parameters, launch.sizes, launch.grid, launch.repeat)
        for launch in nest.launches
    ]
    return repr(parts)
