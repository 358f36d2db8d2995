"""Rows with NaN, infinities and ties, and what of their elements they decide. For tests."""

from __future__ import annotations

import numpy as np

from ir.parse.parse import parse_spec
from ir.spec import Spec

ONE_OF_A_ROW = {"max": "", "min": "", "argmax": "i32", "argmin": "i32"}  # by their dtype, else x's
RUNNING = ("cummax", "cummin")
POINTWISE = {
    "maximum": "maximum(x[m, k], 0.0)",
    "minimum": "minimum(x[m, k], 0.0)",
    "relu": "relu(x[m, k])",
}
NAMES = (*ONE_OF_A_ROW, *RUNNING, *POINTWISE)
_KINDS = (
    (0.0, 1.0, 2.0, -1.0),  # ties
    (np.nan, 3.0, 1.0, -2.0, np.inf, -np.inf),
    (np.nan, np.nan, 1.0),
    (np.nan,),
    (np.inf, 1.0),
    (-np.inf, 1.0),
    (-np.inf,),
    (np.inf,),
)


def extrema(*names: str, dtype: str = "f32") -> Spec:
    """The spec of some of `NAMES`, each an output `y_name` of the rows of `x`."""
    lines = [_line(name) for name in names]
    results = [
        f"{ONE_OF_A_ROW[n] or dtype}[M]" if n in ONE_OF_A_ROW else f"{dtype}[M, K]" for n in names
    ]
    made = f"({', '.join(results)})" if len(names) > 1 else results[0]
    body = "\n    ".join([*lines, f"return {', '.join(f'y_{n}' for n in names)}"])
    return parse_spec(
        f'def extrema(x: {dtype}[M, K]) -> {made}:\n    """Extrema of rows."""\n    {body}\n'
    )


def _line(name: str) -> str:
    at = "m" if name in ONE_OF_A_ROW else "m, k"
    return f"y_{name}[{at}] = {POINTWISE.get(name) or f'{name}(x[m, k], k)'}"


def special_rows(rows: int, columns: int, seed: int) -> np.ndarray:
    """Rows of one kind after the other: ties, NaN among others, NaN alone, infinities; and one in
    which a single NaN is the last element."""
    rng = np.random.default_rng(seed)
    made = np.stack([rng.choice(_KINDS[m % len(_KINDS)], columns) for m in range(rows)])
    made[-1, :-1], made[-1, -1] = rng.normal(size=columns - 1), np.nan
    return made.astype(np.float32)
