"""Inputs other than normally distributed ones, which expose range faults of a kernel.

Floats are changed, integers keep their ranges. The scales are mild: plain arithmetic in a spec's
formats stays finite in most of these draws, small as the range of 16 bits is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ir.reference.inputs import random_inputs, uses
from ir.reference.rounding import round_to
from ir.sizes import bind
from ir.spec import FLOATS, Spec, Tensor

LARGE = 16.0  # overflows 16 bits where values are not normalised first
TINY = 2.0**-10  # its squares are about as large as the epsilons that keep a quotient finite
SHIFT = 1000.0  # exp without subtracting the maximum overflows; E[x^2] - E[x]^2 cancels
MOST = {"f8e4m3": 448.0 / 8, "f8e5m2": 57344.0 / 8}  # largest shift of 8-bit floats


def draws(spec: Spec) -> tuple[str, ...]:
    """The names of a spec's draws besides the normal one; none without float inputs."""
    return tuple(_DRAWS) if any(t.dtype in FLOATS for t in spec.inputs) else ()


def drawn(
    spec: Spec, sizes: Mapping[str, int], rng: np.random.Generator, draw: str
) -> dict[str, np.ndarray]:
    """The inputs of a draw by name, in their dtypes.

    large, tiny: all floats scaled. shifted: the first float input, which in most kernels is data
    and no weight. zero_rows: every other row of each float input of two or more dimensions, unless
    a divisor, a logarithm or a sorted tensor needs it.
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
