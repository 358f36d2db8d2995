"""Rank statistics: how well one list of times orders another, and the cost of following it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def ranks(values: Sequence[float]) -> np.ndarray:
    """Returns the rank of each value from 1. Equal values share their mean rank."""
    data = np.asarray(values, float)
    _, group, counts = np.unique(data, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[group]


def spearman(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Returns Spearman's rank correlation with ties. None for fewer than two values, or if all of
    one list are equal."""
    if len(a) != len(b):
        raise ValueError(f"{len(a)} values beside {len(b)}")
    if len(a) < 2:
        return None
    x, y = (r - r.mean() for r in (ranks(a), ranks(b)))
    scale = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / scale if scale else None


def regret(guessed: Sequence[float], true: Sequence[float]) -> float:
    """Returns the true time of the guessed fastest (the first of equals) over the fastest true
    time. 1 means no loss."""
    return true[int(np.argmin(guessed))] / min(true)


def geometric_mean(values: Sequence[float]) -> float | None:
    """Returns the geometric mean of positive values. None if there are none."""
    return float(np.exp(np.mean(np.log(values)))) if len(values) else None


def relative(values: Sequence[float]) -> list[float]:
    """Returns logarithms of values over their geometric mean. They compare times of different
    groups."""
    logs = np.log(np.asarray(values, float))
    return list(map(float, logs - logs.mean()))
