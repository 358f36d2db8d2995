"""A workload: a spec with the sizes it is tuned for and the sizes it is checked at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ir.spec import Spec

Sizes = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Workload:
    """What a `.kir` file holds: one `def`, then `tune(M=...)` and `check(M=...)` lines.

    tune: the sizes that are timed; None where the file gives none.  checks: small, odd and
    prime sizes at which results are compared with the reference.
    """

    spec: Spec
    tune: Sizes | None = None
    checks: tuple[Sizes, ...] = ()
