"""Guards: which of several kernels for one spec is run at given sizes.

Each tuned shape has a kernel, and other sizes are given that of the nearest tuned shape, by the
distance of the logarithms: sizes that are twice and half as large are as near. Where a size is
further than a factor of `WITHIN` from that shape's, the fallback is run, which is the best over
all of them. A table of shapes can be read in a record and written down in any language, and tells
any shapes apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ir.errors import KernelError

FALLBACK = 0
WITHIN = 4.0
Sizes = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Guard:
    """A tuned shape and the kernel that is run near it: a number from 1, or the fallback's 0."""

    near: Sizes
    kernel: int

    def distance(self, sizes: Sizes) -> float:
        """Of the logarithms of the sizes, Euclidean; KeyError where one is lacking."""
        return math.hypot(*(math.log(sizes[name] / tuned) for name, tuned in self.near.items()))

    def holds(self, sizes: Sizes, within: float = WITHIN) -> bool:
        """Whether every size is within that factor of the tuned one."""
        return all(
            tuned <= within * sizes[name] and sizes[name] <= within * tuned
            for name, tuned in self.near.items()
        )


def chosen(
    guards: Sequence[Guard],
    sizes: Sizes,
    fits: Callable[[int], bool] = lambda kernel: True,
    within: float = WITHIN,
) -> int:
    """The kernel that is run at given sizes; of guards equally near the first decides.

    fits: whether a kernel fits the machine there. Instead of one that does not the fallback is
    taken, and where that does not either the nearest guard's that does. KernelError where none
    fits.
    """
    nearest = sorted(guards, key=lambda guard: guard.distance(sizes))
    wanted = [guard.kernel for guard in nearest[:1] if guard.holds(sizes, within)]
    for kernel in dict.fromkeys((*wanted, FALLBACK, *(guard.kernel for guard in nearest))):
        if fits(kernel):
            return kernel
    shape = ", ".join(f"{name}={size}" for name, size in sizes.items())
    raise KernelError(f"no kernel fits at {shape}", hint="tune one for such a shape")
