"""Fits the time model's weights to result files of `model_rank`, without a device.

The loss is the mean squared error of the logarithms of a kernel's times. Most of it is the error
without each kernel's own mean error, which ranks its schedules; a small share is that mean. Weights
far from their initial values cost a little too. `held out` is the quality of the weights on a
kernel that they were not fitted to.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from backends.gpu.model.model import CHAIN, ENGINES, HIDDEN, MEMORY, WEIGHTS, Weights
from benchmarks.rank import geometric_mean, regret, relative, spearman
from benchmarks.rank_table import Row
from ir.errors import KernelError

EXAMPLES = """
examples:
  python3 -m benchmarks.model_fit benchmarks/results/h200/model_rank.json
  python3 -m benchmarks.model_fit --json a.json b.json
"""
TERMS = ("launch", *MEMORY, *ENGINES, *CHAIN)
STEPS = (1.6, 1.25, 1.1, 1.03)  # Factors that a weight is tried with.
PASSES = 6  # Passes over all weights at each step.
ABSOLUTE = 0.1  # The share of the kernels' mean errors in the loss.
PULL = 2e-3  # Weight of the squared logarithm of a weight over its initial value.
LEAST, MOST = 0.05, 20.0


@dataclass(frozen=True, slots=True)
class Data:
    """Rows as arrays."""

    terms: np.ndarray  # [launches, terms] in microseconds.
    starts: np.ndarray  # [launches] time in which the programs start, in microseconds.
    row: np.ndarray  # [launches] index of the row.
    kernel: np.ndarray  # [rows] index of the kernel.
    true: np.ndarray  # [rows] measured microseconds.
    names: tuple[str, ...]


def data_of(rows: Sequence[Row]) -> Data:
    """Collects the measured rows of all files, if their terms are those of the current model."""
    good = [r for r in rows if r["correct"] and r["measured_us"] and "not_remodelled" not in r]
    names = tuple(dict.fromkeys(r["kernel"] for r in good))
    launches = [(n, t) for n, r in enumerate(good) for t in _launches(r["terms"])]
    return Data(
        terms=np.array([[t[f"{term}_us"] for term in TERMS] for _, t in launches]),
        # Older files do not have this term.
        starts=np.array([t.get("programs_us", 0.0) for _, t in launches]),
        row=np.array([n for n, _ in launches]),
        kernel=np.array([names.index(r["kernel"]) for r in good]),
        true=np.array([r["measured_us"] for r in good]),
        names=names,
    )


def _launches(flat: Mapping[str, float]) -> list[dict[str, float]]:
    """Returns the terms of each launch, from `<launch>.<term>_us`. Figures of the whole nest have
    no launch in their names and are left out."""
    found: dict[str, dict[str, float]] = {}
    for name, number in flat.items():
        launch, _, term = name.rpartition(".")
        if launch:
            found.setdefault(launch, {})[term] = number
    return list(found.values())


def predicted(data: Data, weights: Weights) -> np.ndarray:
    """Returns the predicted microseconds of each row: `model.combine` for all of them."""
    scaled = data.terms * np.array([getattr(weights, t) for t in TERMS])
    beside = scaled[:, 1 : 1 + len(MEMORY) + len(ENGINES)]
    chain = scaled[:, -len(CHAIN) :].sum(1, keepdims=True)
    parts = np.hstack([beside, chain])
    longest = parts.max(1)
    work = longest + weights.loss * (parts.sum(1) - longest)
    us = scaled[:, 0] + (work**HIDDEN + data.starts**HIDDEN) ** (1 / HIDDEN)
    return np.bincount(data.row, us, len(data.true))


def loss(data: Data, weights: Weights, kept: np.ndarray, start: Weights = WEIGHTS) -> float:
    """Returns the loss. kept: which rows count."""
    errors = np.log(predicted(data, weights) / data.true)
    total, kernels = 0.0, np.unique(data.kernel[kept])
    for k in kernels:
        own = errors[(data.kernel == k) & kept]
        total += own.var() + ABSOLUTE * own.mean() ** 2
    pull = sum(
        np.log(getattr(weights, f.name) / getattr(start, f.name)) ** 2 for f in fields(Weights)
    )
    return total / len(kernels) + PULL * float(pull)


def fitted(data: Data, kept: np.ndarray | None = None, start: Weights = WEIGHTS) -> Weights:
    """Returns the weights with the smallest loss that steps along one weight at a time find from
    `start`."""
    kept = np.ones(len(data.true), bool) if kept is None else kept
    best, least = start, loss(data, start, kept, start)
    for step in STEPS:
        for _ in range(PASSES):
            before = least
            for name in (f.name for f in fields(Weights)):
                for factor in (step, 1 / step):
                    tried = min(MOST, max(LEAST, getattr(best, name) * factor))
                    trial = replace(best, **{name: tried})
                    found = loss(data, trial, kept, start)
                    if found < least:
                        best, least = trial, found
            if least == before:
                break
    return best


def quality(data: Data, by_kernel: Mapping[int, Weights]) -> dict[str, dict[str, float | None]]:
    """Returns rho and regret of each kernel under its weights.

    `all` has their means, and `pooled`, the rho of all rows relative to their kernels' times.
    """
    found: dict[str, dict[str, float | None]] = {}
    both: tuple[list[float], list[float]] = ([], [])
    regrets: list[float] = []
    offs: list[float] = []
    for k, weights in by_kernel.items():
        own = data.kernel == k
        guessed, true = predicted(data, weights)[own], data.true[own]
        regrets.append(regret(list(guessed), list(true)))
        offs.append(float(np.exp(np.log(guessed / true).mean())))
        both[0].extend(relative(list(guessed)))
        both[1].extend(relative(list(true)))
        found[data.names[k]] = {
            "rows": float(own.sum()),
            "rho": spearman(list(guessed), list(true)),
            "regret": regrets[-1],
            "off": offs[-1],
        }
    rhos = [q["rho"] for q in found.values() if q["rho"] is not None]
    found["all"] = {
        "rows": float(len(data.true)),
        "rho": float(np.mean(rhos)) if rhos else None,
        "pooled": spearman(*both),
        "regret": geometric_mean(regrets),
        "off": geometric_mean(offs),
    }
    return found


def held_out(data: Data) -> dict[int, Weights]:
    """Returns for each kernel the weights fitted to all others."""
    return {k: fitted(data, data.kernel != k) for k in range(len(data.names))}


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the quality of the current weights, of fitted and of held-out ones; then the fitted
    weights."""
    made = argparse.ArgumentParser(
        "model_fit",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("files", nargs="+", type=Path)
    made.add_argument("--json", action="store_true")
    asked = made.parse_args(arguments)
    try:
        rows = [row for file in asked.files for row in _rows(file)]
    except KernelError as error:
        print(f"model_fit: {error}", file=sys.stderr)
        return 2
    data = data_of(rows)
    if len(data.names) < 2:
        print("model_fit: the files hold measured rows of fewer than two kernels", file=sys.stderr)
        return 2
    best = fitted(data)
    kernels = range(len(data.names))
    result = {
        "now": quality(data, dict.fromkeys(kernels, WEIGHTS)),
        "fitted": quality(data, dict.fromkeys(kernels, best)),
        "held out": quality(data, held_out(data)),
        "weights": {name: round(number, 3) for name, number in asdict(best).items()},
    }
    print(json.dumps(result, indent=1) if asked.json else _text(result))
    return 0


def _rows(file: Path) -> list[Row]:
    try:
        return json.loads(file.read_text(encoding="utf-8"))["rows"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise KernelError(
            f"this is no result file: {error}",
            where=str(file),
            hint="give a file that benchmarks.model_rank wrote",
        ) from None


def _text(result: Mapping[str, Mapping[str, Any]]) -> str:
    names = ("now", "fitted", "held out")
    lines = [f"{'kernel':18}" + "".join(f"{n + ': rho, regret, off':>32}" for n in names)]
    for kernel in result["now"]:
        cells = [result[n][kernel] for n in names]
        texts = [f"{c['rho'] or 0:.2f}, {c['regret']:.2f}, {c['off']:.2f}" for c in cells]
        lines.append(f"{kernel:18}" + "".join(f"{t:>32}" for t in texts))
    pooled = "".join(f"{result[n]['all']['pooled'] or 0:>32.2f}" for n in names)
    return "\n".join([*lines, f"{'pooled rho':18}{pooled}", f"weights: {result['weights']}"])


if __name__ == "__main__":
    sys.exit(main())
