"""Guards: select which of several kernels for one spec runs at given sizes.

Each tuned shape has a kernel. Other sizes use the kernel of the nearest tuned shape, by Euclidean
distance of the logarithms of the sizes, so half and twice a size are equally near. If a size
differs from that shape's by more than the factor `WITHIN`, the fallback runs: the kernel that is
best over all shapes. A table of shapes is readable in a record and easy to write in any language.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ir.errors import KernelError
from ir.workload import Sizes

FALLBACK = 0
WITHIN = 4.0


@dataclass(frozen=True, slots=True)
class Guard:
    """A tuned shape and the kernel that runs near it."""

    near: Sizes
    kernel: int  # its number from 1, or FALLBACK

    def distance(self, sizes: Sizes) -> float:
        """Euclidean distance of the logarithms of the sizes. Raises KeyError if a size is
        missing."""
        return math.hypot(*(math.log(sizes[name] / tuned) for name, tuned in self.near.items()))

    def holds(self, sizes: Sizes, within: float = WITHIN) -> bool:
        """Whether every size is within the factor `within` of the tuned one."""
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
    """The kernel for given sizes; among equally near guards the first one wins.

    If the nearest kernel does not fit, the fallback is taken. If that does not fit either, the
    nearest guard's kernel that fits is taken. Raises KernelError if none fits.

    fits: whether a kernel fits the machine at these sizes.
    """
    nearest = sorted(guards, key=lambda guard: guard.distance(sizes))
    wanted = [guard.kernel for guard in nearest[:1] if guard.holds(sizes, within)]
    for kernel in dict.fromkeys((*wanted, FALLBACK, *(guard.kernel for guard in nearest))):
        if fits(kernel):
            return kernel
    shape = ", ".join(f"{name}={size}" for name, size in sizes.items())
    raise KernelError(f"no kernel fits at {shape}", hint="tune one for such a shape")
