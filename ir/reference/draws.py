"""Draws: inputs other than normally distributed ones, in which a kernel's faults of range show.

Floats are changed, integers keep their ranges. The scales are mild: honest arithmetic in the formats
of a spec stays finite in most of them, as a range of 16 bits is small.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ir.reference.inputs import random_inputs, uses
from ir.reference.rounding import round_to
from ir.sizes import bind
from ir.spec import FLOATS, Spec, Tensor

LARGE = 16.0  # what overflows 16 bits before it is normalised
TINY = 2.0**-10  # squares about as large as the terms that keep a quotient finite
SHIFT = 1000.0  # exponentials without their maximum overflow, squares lose their differences
MOST = {"f8e4m3": 448.0 / 8, "f8e5m2": 57344.0 / 8}  # to which a shift is cut


def draws(spec: Spec) -> tuple[str, ...]:
    """The names of the draws that a spec has beside the normal one: none without float inputs."""
    return tuple(_DRAWS) if any(t.dtype in FLOATS for t in spec.inputs) else ()


def drawn(
    spec: Spec, sizes: Mapping[str, int], rng: np.random.Generator, draw: str
) -> dict[str, np.ndarray]:
    """Inputs by name, in their dtypes, of a draw.

    large, tiny: all floats scaled.  shifted: the first float input, which for most kernels is the data
    and not a weight.  zero_rows: every other row of each float input of two or more
    dimensions, where no divisor or logarithm needs it.
    """
    made = random_inputs(spec, sizes, rng)
    use = uses(spec, bind(spec, sizes))
    floats = [t for t in spec.inputs if t.dtype in FLOATS]
    keep = use.positive | set(use.borders)
    changed = _DRAWS[draw](floats, made, keep)
    dtypes = {t.name: t.dtype for t in floats}
    return {**made, **{name: round_to(a, dtypes[name]) for name, a in changed.items()}}


def _scaled(by: float) -> Callable[..., dict[str, np.ndarray]]:
    def scaled(
        floats: list[Tensor], made: Mapping[str, np.ndarray], keep: set[str]
    ) -> dict[str, np.ndarray]:
        return {t.name: _wide(made[t.name]) * by for t in floats}

    return scaled


def _shifted(
    floats: list[Tensor], made: Mapping[str, np.ndarray], keep: set[str]
) -> dict[str, np.ndarray]:
    first = floats[0]
    return {first.name: _wide(made[first.name]) + MOST.get(first.dtype, SHIFT)}


def _zero_rows(
    floats: list[Tensor], made: Mapping[str, np.ndarray], keep: set[str]
) -> dict[str, np.ndarray]:
    found = {}
    for t in floats:
        if made[t.name].ndim > 1 and t.name not in keep:
            rows = made[t.name].reshape(-1, made[t.name].shape[-1]).copy()
            rows[::2] = 0
            found[t.name] = rows.reshape(made[t.name].shape)
    return found


def _wide(array: np.ndarray) -> np.ndarray:
    return np.asarray(array, np.float64)


_DRAWS: Mapping[str, Callable[..., dict[str, np.ndarray]]] = {
    "large": _scaled(LARGE),
    "tiny": _scaled(TINY),
    "shifted": _shifted,
    "zero_rows": _zero_rows,
}
