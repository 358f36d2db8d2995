"""A workload: a spec, the sizes it is tuned for and the sizes it is checked at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ir.errors import KernelError
from ir.spec import Spec

LIBRARY = Path(__file__).parent / "library"  # the starter kernels: a .kir file each
Sizes = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Workload:
    """The contents of a `.kir` file: one `def`, then `tune(M=...)` and `check(M=...)` lines."""

    spec: Spec
    tune: Sizes | None = None  # the sizes that are timed; None if the file gives none
    # Small, odd and prime sizes at which results are compared with the reference.
    checks: tuple[Sizes, ...] = ()

    @property
    def timed_sizes(self) -> Sizes:
        """The sizes that are timed. Raises KernelError if the file gives none."""
        if self.tune is None:
            raise KernelError(
                f"`{self.spec.name}` has no sizes to be timed at",
                hint="give them in a line `tune(...)`",
            )
        return self.tune
