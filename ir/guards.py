"""Guards: which of several kernels for one spec is run at given sizes.

A decision list: rules in order, each of which bounds a few sizes and names a kernel; the first
that holds decides, and where none does the fallback is run. Bounds are whole numbers half way (in
the logarithm) between the shapes that kernels were tuned for. Of the ways to tell shapes apart
this one can be read in a record and written down in any language as comparisons, needs only the
sizes that matter, and says what happens at shapes beyond those that were tuned.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ir.errors import KernelError

FALLBACK = 0
Sizes = Mapping[str, int]
Point = tuple[Sizes, int]  # a tuned shape, and the kernel that is to be run there


@dataclass(frozen=True, slots=True)
class Bound:
    """least <= size <= most; None: not bounded on that side."""

    size: str
    least: int | None = None
    most: int | None = None

    def holds(self, sizes: Sizes) -> bool:
        """Whether sizes are within it; KeyError where they lack its size."""
        number = sizes[self.size]
        return (self.least is None or number >= self.least) and (
            self.most is None or number <= self.most
        )

    def __str__(self) -> str:
        low = f"{self.least} <= " if self.least is not None else ""
        high = f" <= {self.most}" if self.most is not None else ""
        return f"{low}{self.size}{high}"


@dataclass(frozen=True, slots=True)
class Rule:
    """Where all bounds hold, this kernel is run: a number from 1, or the fallback's 0."""

    kernel: int
    bounds: tuple[Bound, ...] = ()

    def holds(self, sizes: Sizes) -> bool:
        """Whether it decides at these sizes."""
        return all(bound.holds(sizes) for bound in self.bounds)

    def __str__(self) -> str:
        return " and ".join(map(str, self.bounds)) or "elsewhere"


def chosen(
    rules: Sequence[Rule], sizes: Sizes, fits: Callable[[int], bool] = lambda kernel: True
) -> int:
    """The kernel that is run at given sizes.

    fits: whether a kernel fits the machine there. One that does not is passed over; where the
    fallback does not either, the first rule's kernel that does is taken. KernelError where none
    fits.
    """
    for rule in rules:
        if rule.holds(sizes) and fits(rule.kernel):
            return rule.kernel
    for kernel in dict.fromkeys((FALLBACK, *(rule.kernel for rule in rules))):
        if fits(kernel):
            return kernel
    shape = ", ".join(f"{name}={size}" for name, size in sizes.items())
    raise KernelError(f"no kernel fits at {shape}", hint="tune one for such a shape")


def rules_for(points: Sequence[Point]) -> tuple[Rule, ...]:
    """A short list with which each point gets its kernel; none of its rules is the fallback's.

    Each rule takes as many of the points left as it can, by one comparison of one size if that
    is as good as bounds around a point; of equals the one with the widest gap. The points must be
    distinct.
    """
    left, rules = list(points), []
    while any(kernel != FALLBACK for _, kernel in left):
        rule = _next(left)
        taken = [point for point in left if rule.holds(point[0])]
        assert taken, f"the rule `{rule}` takes no shape"
        rules.append(rule)
        left = [point for point in left if point not in taken]
    return tuple(rules)


def _next(left: Sequence[Point]) -> Rule:
    kernels = {kernel for _, kernel in left}
    if len(kernels) == 1:
        return Rule(kernels.pop())
    found = list(_comparisons(left))
    for point in left:
        if point[1] != FALLBACK:
            box = _box(point, left)
            found.append((sum(box.holds(sizes) for sizes, _ in left), 0.0, box))
    return max(found, key=lambda each: (each[0], -len(each[2].bounds), each[1]))[2]


def _comparisons(left: Sequence[Point]) -> Iterator[tuple[int, float, Rule]]:
    """Rules of one comparison that take points of one kernel only, which is not the fallback:
    how many, the gap, the rule."""
    for size in left[0][0]:
        values = sorted({sizes[size] for sizes, _ in left})
        for low, high in zip(values, values[1:]):
            border = math.isqrt(low * high)
            for bound in (Bound(size, most=border), Bound(size, least=border + 1)):
                taken = {kernel for sizes, kernel in left if bound.holds(sizes)}
                if len(taken) == 1 and FALLBACK not in taken:
                    count = sum(bound.holds(sizes) for sizes, _ in left)
                    yield count, math.log(high / low), Rule(*taken, (bound,))


def _box(point: Point, left: Sequence[Point]) -> Rule:
    """Bounds around a point that keep out all points of other kernels."""
    here, kernel = point
    rule = Rule(kernel)
    while others := [s for s, k in left if k != kernel and rule.holds(s)]:
        size, there = max(
            ((name, s[name]) for s in others for name in here if s[name] != here[name]),
            key=lambda each: abs(math.log(each[1] / here[each[0]])),
        )
        rule = Rule(kernel, _with(rule.bounds, _border(size, here[size], there, left)))
    return rule


def _border(size: str, here: int, there: int, left: Sequence[Point]) -> Bound:
    """Keeps `there` out, and as much as it can of what lies between it and `here` in."""
    values = sorted({sizes[size] for sizes, _ in left})
    at = values.index(there)
    if there > here:
        return Bound(size, most=math.isqrt(values[at - 1] * there))
    return Bound(size, least=math.isqrt(there * values[at + 1]) + 1)


def _with(bounds: tuple[Bound, ...], new: Bound) -> tuple[Bound, ...]:
    """The bounds with one more; two of one size become one."""
    for n, old in enumerate(bounds):
        if old.size == new.size:
            least = max((b for b in (old.least, new.least) if b is not None), default=None)
            most = min((b for b in (old.most, new.most) if b is not None), default=None)
            return (*bounds[:n], Bound(new.size, least, most), *bounds[n + 1 :])
    return (*bounds, new)
