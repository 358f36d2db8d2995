"""Draws random shapes for comparisons, so that no kernel can hard-code them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from math import prod

import numpy as np

from ir.errors import KernelError
from ir.reference.inputs import random_inputs
from ir.reference.reference import evaluate
from ir.reference.rows import iterations
from ir.sizes import bind, free_sizes, shape
from ir.spec import Spec

Sizes = Mapping[str, int]

LONG = (130, 400)  # a size of the long shape: several tiles in every loop
LONGER = (300, 800)  # a single size, for the loops whose tiles are large
ODD = (1, 67)
WORK = 1 << 22  # most iterations of all equations, so that interpreters take little time
ENTRIES = 1 << 18  # most elements of inputs and outputs
# For a shape at which a single candidate is compared: its tiles can be large.
MORE_ENTRIES, MORE_WORK = 1 << 20, 1 << 25
TRIES = 30  # for each shape


def drawn_shapes(
    spec: Spec, tuned: Sequence[Sizes], known: Sequence[Sizes], seed: int
) -> tuple[Sizes, ...]:
    """Up to three shapes, none of them `known`: all sizes long, a single longer size, odd sizes.

    No size exceeds the least of the tuned ones, as a schedule need not support more. The result has
    fewer shapes if the equations allow no others, or none if a spec has no free sizes.
    """
    names = free_sizes(spec)
    if not names or not tuned:
        return ()
    most = {name: min(sizes[name] for sizes in tuned) for name in names}
    rng = random.Random(seed)
    found: list[Sizes] = []
    for kind in (_long, _longer, _odd):
        for sizes in kind(most, rng):
            made = _within(spec, sizes)
            if made and made not in (*found, *map(dict, known)) and _possible(spec, made):
                found.append(made)
                break
    return tuple(found)


def fitting(spec: Spec, sizes: Sizes) -> bool:
    """Whether a spec can have these sizes, at which its reference takes little time."""
    taken = _taken(spec, sizes)
    if taken is None or taken[0] > MORE_ENTRIES or taken[1] > MORE_WORK:
        return False
    return _possible(spec, sizes)


def _long(most: Sizes, rng: random.Random) -> Iterator[dict[str, int]]:
    for _ in range(TRIES):
        yield {name: min(top, rng.randint(*LONG)) for name, top in most.items()}


def _longer(most: Sizes, rng: random.Random) -> Iterator[dict[str, int]]:
    for _ in range(TRIES):
        sizes = {name: min(top, rng.randint(*ODD)) for name, top in most.items()}
        name = rng.choice([n for n, top in most.items() if top == max(most.values())])
        yield sizes | {name: min(most[name], rng.randint(*LONGER))}


def _odd(most: Sizes, rng: random.Random) -> Iterator[dict[str, int]]:
    for _ in range(TRIES):
        yield {name: max(1, min(top, rng.randint(*ODD) | 1)) for name, top in most.items()}


def _within(spec: Spec, sizes: dict[str, int]) -> dict[str, int]:
    """Halves the largest size until the sizes are affordable; empty if the spec cannot have such
    sizes."""
    sizes = dict(sizes)
    while True:
        taken = _taken(spec, sizes)
        if taken is None:
            return {}
        if taken[0] <= ENTRIES and taken[1] <= WORK:
            return sizes
        largest = max(sizes, key=lambda name: sizes[name])
        if sizes[largest] < 2:
            return {}
        sizes[largest] = sizes[largest] // 2 | 1


def _taken(spec: Spec, sizes: Sizes) -> tuple[int, int] | None:
    """Elements of inputs and outputs, and iterations of all equations; None if the spec cannot have
    these sizes."""
    try:
        bound = bind(spec, sizes)
        entries = sum(prod(shape(t, bound)) for t in (*spec.inputs, *spec.outputs))
        return entries, sum(iterations(spec, e, bound) for e in spec.equations)
    except KernelError:
        return None


def _possible(spec: Spec, sizes: Sizes) -> bool:
    """Whether the equations can be evaluated at these sizes."""
    try:
        evaluate(spec, random_inputs(spec, sizes, np.random.default_rng(0)), sizes)
    except (KernelError, ValueError, IndexError):
        return False
    return True
