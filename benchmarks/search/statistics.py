"""Statistics of the ablation: which configuration finds more with the same evaluations, and how
certain that is.

A block is a kernel with a seed. Within a block, only the configuration differs. Intervals are
percentiles of bootstrap resamples of the blocks (Efron 1979). Their seed is fixed, so the same rows
give the same page.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from benchmarks.rank import ranks
from benchmarks.search.configuration import USUAL

Row = Mapping[str, Any]
Block = tuple[str, int]
RESAMPLES = 2000
SEED = 2026
LEVEL = 95  # Percent, of every interval.
BASELINE = "tpe"  # Final times are compared with those of this policy.
NEAR = 0.95  # The share of the best known speed at which a search has arrived.


def best_known(rows: Sequence[Row]) -> dict[str, float]:
    """Returns the fastest time of each kernel in any row, in us."""
    found: dict[str, float] = {}
    for row in rows:
        if row["us"] is not None:
            found[row["kernel"]] = min(row["us"], found.get(row["kernel"], np.inf))
    return found


def best_so_far(row: Row) -> np.ndarray:
    """Returns the best time in us after 1, 2, ... evaluations.

    Before the first correct one it is the time of that one. After the last one it stays.
    """
    numbers = [n for n, _ in row["curve"]]
    times = [us for _, us in row["curve"]]
    at = (max(0, bisect_right(numbers, n) - 1) for n in range(1, row["evaluations"] + 1))
    return np.array([times[n] for n in at])


def area(row: Row, best: float) -> float:
    """Returns the mean over the evaluations of log(best so far / best known). 0 is perfect."""
    return float(np.mean(np.log(best_so_far(row) / best)))


def reached(row: Row, best: float) -> int:
    """Returns the evaluations until `NEAR` of the best known speed. If never, one more than the
    evaluations."""
    there = best / best_so_far(row) >= NEAR
    return int(np.argmax(there)) + 1 if there.any() else row["evaluations"] + 1


def blocks(rows: Sequence[Row]) -> dict[Block, dict[str, Row]]:
    """Returns the rows of each block by configuration, without those that found nothing correct."""
    good = sorted((r for r in rows if r["us"] is not None), key=_block)
    return {b: {r["configuration"]: r for r in group} for b, group in groupby(good, _block)}


def compared(
    rows: Sequence[Row], names: Sequence[str]
) -> tuple[list[Block], dict[str, np.ndarray]]:
    """Returns the blocks in which all given configurations have run.

    For each configuration it also returns an array of (area, final time over the best known,
    evaluations until near it) by block.
    """
    best = best_known(rows)
    found = {b: by for b, by in blocks(rows).items() if all(name in by for name in names)}
    table = {
        name: np.array([_figures(by[name], best[kernel]) for (kernel, _), by in found.items()])
        for name in names
    }
    return list(found), table


def curves(rows: Sequence[Row], names: Sequence[str]) -> dict[str, dict[str, list[float]]]:
    """Returns for each kernel and configuration the best so far over the best known of the kernel.

    It is the geometric mean over the seeds that all these configurations have run.
    """
    best = best_known(rows)
    found: dict[str, dict[str, list[np.ndarray]]] = {}
    for (kernel, _), by in blocks(rows).items():
        if all(name in by for name in names):
            group = found.setdefault(kernel, {name: [] for name in names})
            for name in names:
                group[name].append(np.log(best_so_far(by[name]) / best[kernel]))
    return {
        kernel: {name: np.exp(np.mean(logs, axis=0)).tolist() for name, logs in of.items()}
        for kernel, of in found.items()
    }


def summary(rows: Sequence[Row]) -> dict[str, Any]:
    """Summarizes the rows.

    It has the best known times, a comparison of the default configuration with all others that are
    not variations, and one of each variation with its base.
    """
    names = sorted({r["configuration"] for r in rows})
    whole = [n for n in names if not _varies(n) or n == str(USUAL) or _base(n) not in names]
    pairs = [(n, _base(n)) for n in names if _varies(n) and _base(n) in names]
    return {
        "best_known_us": best_known(rows),
        "failed": sum(r["us"] is None for r in rows),
        "policies": table(rows, whole),
        "variations": [variation(rows, name, base) for name, base in pairs],
    }


def table(rows: Sequence[Row], names: Sequence[str]) -> dict[str, Any]:
    """Returns configurations in order of their mean rank by area, with intervals.

    It has the share of the blocks in which one beats another by area (a tie counts half). over: the
    final time over that of `BASELINE`.
    """
    where, found = compared(rows, names)
    if not where or not names:
        return {"blocks": [], "rows": [], "wins": {}}
    ranked = np.array([ranks(column) for column in _columns(found, 0)])
    made = []
    for n, name in enumerate(names):
        areas, finals, near = found[name].T
        made.append(
            {
                "configuration": name,
                "rank": _estimate(ranked[:, n], np.mean),
                "area": _estimate(areas, np.mean),
                "final": _estimate(finals, _geometric),
                "over": _over(found, finals),
                "near": _estimate(near, np.median),
                "got_near": float(np.mean(near <= _most(rows))),
            }
        )
    made.sort(key=lambda r: (r["rank"]["value"], r["configuration"]))
    order = [r["configuration"] for r in made]
    wins = {a: {b: _wins(found[a][:, 0], found[b][:, 0]) for b in order if b != a} for a in order}
    return {"blocks": [list(b) for b in where], "rows": made, "wins": wins}


def variation(rows: Sequence[Row], name: str, base: str) -> dict[str, Any]:
    """Compares a configuration with the one that it varies, block by block.

    area: by how much its area is larger (worse).
    final: its final time over the other's.
    near: how many more evaluations it needs until near the best known.
    """
    where, found = compared(rows, (name, base))
    if not where:
        return {"configuration": name, "base": base, "blocks": 0}
    one, other = found[name], found[base]
    return {
        "configuration": name,
        "base": base,
        "blocks": len(where),
        "area": _estimate(one[:, 0] - other[:, 0], np.mean),
        "final": _estimate(one[:, 1] / other[:, 1], _geometric),
        "near": _estimate(one[:, 2] - other[:, 2], np.mean),
        "wins": _wins(one[:, 0], other[:, 0]),
    }


def interval(values: np.ndarray, of: Callable[[np.ndarray], float]) -> tuple[float, float]:
    """Returns the bootstrap interval of a statistic over blocks."""
    rng = np.random.default_rng(SEED)
    drawn = rng.integers(0, len(values), (RESAMPLES, len(values)))
    found = [of(values[sample]) for sample in drawn]
    low, high = np.percentile(found, [(100 - LEVEL) / 2, (100 + LEVEL) / 2])
    return float(low), float(high)


def _estimate(values: np.ndarray, of: Callable[[np.ndarray], float]) -> dict[str, float]:
    low, high = interval(values, of)
    return {"value": float(of(values)), "low": low, "high": high}


def _over(found: Mapping[str, np.ndarray], finals: np.ndarray) -> dict[str, float] | None:
    """Returns final times over the baseline's in the same blocks. None if the baseline was not
    run."""
    if BASELINE not in found:
        return None
    return _estimate(finals / found[BASELINE][:, 1], _geometric)


def _figures(row: Row, best: float) -> tuple[float, float, int]:
    return area(row, best), row["us"] / best, reached(row, best)


def _columns(found: Mapping[str, np.ndarray], figure: int) -> np.ndarray:
    """Returns one figure, with a row for each block and a column for each configuration."""
    return np.stack([values[:, figure] for values in found.values()], axis=1)


def _geometric(values: np.ndarray) -> float:
    return float(np.exp(np.mean(np.log(values))))


def _wins(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.mean((one < other) + 0.5 * (one == other)))


def _most(rows: Sequence[Row]) -> int:
    return max(r["evaluations"] for r in rows)


def _block(row: Row) -> Block:
    return row["kernel"], row["seed"]


def _varies(name: str) -> bool:
    return "~" in name or "+" in name


def _base(name: str) -> str:
    return name.partition("+")[0].partition("~")[0]
