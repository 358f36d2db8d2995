"""Ranks: how well one list of times orders another, and what following it costs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def ranks(values: Sequence[float]) -> np.ndarray:
    """The place of each value from 1; equal values share the mean of their places."""
    data = np.asarray(values, float)
    _, group, counts = np.unique(data, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[group]


def spearman(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Spearman's rank correlation, ties included; None for fewer than two values, or where all
    of one list are equal."""
    if len(a) != len(b):
        raise ValueError(f"{len(a)} values beside {len(b)}")
    if len(a) < 2:
        return None
    x, y = (r - r.mean() for r in (ranks(a), ranks(b)))
    scale = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / scale if scale else None


def regret(guessed: Sequence[float], true: Sequence[float]) -> float:
    """The true time of what was guessed to be the fastest (the first of equals), over the
    fastest true time; 1: nothing was lost."""
    return true[int(np.argmin(guessed))] / min(true)


def geometric_mean(values: Sequence[float]) -> float | None:
    """The geometric mean of positive values; None of none."""
    return float(np.exp(np.mean(np.log(values)))) if len(values) else None


def relative(values: Sequence[float]) -> list[float]:
    """Logarithms of values over their geometric mean: times of one group beside another's."""
    logs = np.log(np.asarray(values, float))
    return list(map(float, logs - logs.mean()))
