"""The shapes that a user names: their parsing, and their completion to a kernel's sizes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ir.errors import KernelError
from ir.sizes import bind, free_sizes
from ir.source import near
from ir.spec import Spec
from ir.workload import Sizes
from search.core.quantity import positive
from search.core.quantity import shape as words
from search.core.workload import WeightedShape

OPTION = "--shape"
_SIZE = re.compile(r"([A-Za-z]\w*)=(\d+)")


def worded(text: str) -> WeightedShape:
    """Parses `M=2048,K=512` or `M=2048,K=512@3`: sizes and their weight (default 1)."""
    parts, at, weight = text.partition("@")
    sizes: dict[str, int] = {}
    for part in parts.split(","):
        found = _SIZE.fullmatch(part.strip())
        if not found or found[1] in sizes or not int(found[2]):
            what = (
                f"`{part.strip()}` is given twice"
                if found and found[1] in sizes
                else (f"`{part.strip()}` is not a size with its positive whole number")
            )
            raise KernelError(
                what,
                where=OPTION,
                allowed="NAME=NUMBER,...[@WEIGHT]",
                hint="for example --shape=M=2048,K=512",
            )
        sizes[found[1]] = int(found[2])
    return WeightedShape(
        sizes, positive_number(OPTION, weight, "M=2048,K=512@3", "is no weight") if at else 1.0
    )


def positive_number(option: str, text: str, example: str, fault: str = "is not allowed") -> float:
    """Parses a positive number. Raises KernelError otherwise. example: of the option's value."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not positive(number):
        raise KernelError(
            f"`{text}` {fault}",
            where=option,
            allowed="a positive number",
            hint=f"for example {option}={example}",
        )
    return number


def workload(
    spec: Spec, tune: Sizes | None, given: Sequence[WeightedShape]
) -> tuple[WeightedShape, ...]:
    """The shapes to tune for, at least one: those given, completed by the sizes in the kernel's
    file.

    Raises KernelError if a size is unknown, missing or invalid, or if two shapes are equal.
    """
    found: list[WeightedShape] = []
    for shape in given or (WeightedShape({}),):
        sizes = _sizes(spec, tune, shape.sizes)
        if sizes in [other.sizes for other in found]:
            raise KernelError(
                f"the shape {words(sizes)} is given twice",
                where=OPTION,
                hint="give it once, with the sum of the weights",
            )
        found.append(WeightedShape(sizes, shape.weight))
    return tuple(found)


def _sizes(spec: Spec, tune: Sizes | None, shape: Mapping[str, int]) -> dict[str, int]:
    """The free sizes to tune for in the spec's order, each known and positive."""
    given = {**(tune or {}), **shape}
    names = free_sizes(spec)
    for name in shape:
        if name not in names:
            raise KernelError(
                f"kernel `{spec.name}` has no size `{name}`",
                where=OPTION,
                allowed=", ".join(names),
                hint=near(name, names, "sizes are named in the kernel's file"),
            )
    lacking = [name for name in names if name not in given]
    if lacking:
        raise KernelError(
            f"kernel `{spec.name}` has no value for size {', '.join(lacking)}",
            where=OPTION,
            hint="give it: --shape=" + ",".join(f"{name}=1024" for name in lacking),
        )
    try:
        bind(spec, given)
    except KernelError as error:
        raise error.within(OPTION if shape else f"kernel `{spec.name}`") from None
    return in_order(spec, given)


def in_order(spec: Spec, sizes: Sizes) -> dict[str, int]:
    """Sizes in the order of the kernel's signature, independent of the order in a file or a store.

    A prompt shows sizes in order, so a resumed run must have the order of the first.
    """
    return {name: sizes[name] for name in free_sizes(spec)}
