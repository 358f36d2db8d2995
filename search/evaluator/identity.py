"""The identity of a candidate's source: equal for candidates that come to one program."""

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

    served: Mapping[str, Served]  # by the name of a backend
    # Those that are timed; the source is emitted for the widest, as when it is evaluated.
    shapes: tuple[WeightedShape, ...]

    def __call__(self, candidate: Candidate) -> str:
        """Empty where it is not known: of an edited source, or where nothing can be emitted."""
        if candidate.source is not None:
            return ""
        try:
            one = self.served[candidate.backend]
            backend, machine = one.backend, one.machine
            nests = [nest_of(candidate, machine, shape.sizes) for shape in self.shapes]
            sizes = widest(spec_of(candidate.variant), machine, self.shapes)
            nest = nests[[shape.sizes for shape in self.shapes].index(sizes)]
            source = backend.emit(nest, machine)
        except Exception:  # whatever it is, its evaluation says so, in a process of its own
            return ""
        # A source names the schedule that it is of, which does nothing.
        said = source.replace(text_digest(candidate.schedule), "")
        return text_digest(
            "\n".join((candidate.backend, candidate.variant, said, *map(_launched, nests)))
        )


def _launched(nest: LoopNest) -> str:
    """What the host of a kernel takes from the nest and not from the source."""
    parts: Sequence[object] = [
        (launch.name, launch.parameters, launch.sizes, launch.grid, launch.repeat)
        for launch in nest.launches
    ]
    return repr(parts)
