"""Measures how well each measure separates the candidates of a search: bins of random correct
candidates.

A measure with one value for all candidates does not help an archive. `bits` is the entropy of the
bins of one kernel's correct candidates; `cells` is the number of cells of several measures with a
candidate; `good` is the number of those with one that takes at most 1.5 times the best time.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from functools import partial
from itertools import combinations
from math import log2
from pathlib import Path
from statistics import mean
from typing import Any

from backends.registry import backend_for, target
from benchmarks.results import save
from ir.errors import KernelError
from ir.machine import Machine
from ir.parse.parse import parse_workload
from ir.print import spec_text
from ir.workload import LIBRARY
from search.core.evaluation import Evaluation
from search.core.measures import MEASURES, Cell
from search.core.settings import Settings
from search.evaluator.cache import Cached
from search.evaluator.local import LocalEvaluator
from search.evaluator.stages import Bench
from search.loop.run import Search
from search.operator import local_operators
from search.policy import policy
from search.store.forgetful import Forgetful

KERNELS = (
    "attention",
    "conv1d",
    "embedding_bag",
    "layer_norm",
    "matmul_bias_gelu",
    "rmsnorm_matmul",
    "softmax",
    "wukong_fm",
)
GOOD = 1.5  # Limit relative to the best time.
EXAMPLES = """
examples:
  python3 -m benchmarks.spread --target=null --kernels=softmax --evaluations=8 --out=spread.json
  python3 -m benchmarks.spread --target=npu --out=benchmarks/results/npu/spread.json
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command. Returns 0 if every kernel had a correct candidate."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    asked = _parser().parse_args(words)
    try:
        machine = target(asked.target)
        rows = []
        for kernel in asked.kernels.split(","):
            rows.append(row(kernel, machine, asked))
            print(f"{kernel}: {len(rows[-1]['us'])} correct", file=sys.stderr)
    except KernelError as error:
        print(f"spread: {error}", file=sys.stderr)
        return 2
    head = {
        "command": " ".join(("python3 -m benchmarks.spread", *words)),
        "date": date.today().isoformat(),
        "target": asked.target,
        "policy": asked.policy,
        "evaluations": asked.evaluations,
        "seed": asked.seed,
    }
    table = {**head, "summary": summary(rows), "rows": rows}
    save(asked.out, table)
    print(text(table["summary"]), end="")
    return 0 if all(r["us"] for r in rows) else 1


def row(kernel: str, machine: Machine, asked: argparse.Namespace) -> dict[str, Any]:
    """Returns a kernel's correct candidates: times, and the bin of each measure."""
    outcomes = _search(kernel, machine, asked)
    found = [o for o in outcomes if isinstance(o, Evaluation)]
    return {
        "kernel": kernel,
        "failed": len(outcomes) - len(found),
        "time_kind": found[0].time_kind if found else None,
        "us": [o.us for o in found],
        "bins": {
            name: [measure.bin(o.figures, machine) for o in found]
            for name, measure in MEASURES.items()
        },
    }


def summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns means over the kernels, of each measure alone and of each two and three, the widest
    first."""
    rows = [r for r in rows if r["us"]]
    sets = [s for size in (1, 2, 3) for s in combinations(MEASURES, size)] if rows else []
    found = [{"measures": list(names), **_spread(rows, names)} for names in sets]
    return {
        str(size): sorted((f for f in found if len(f["measures"]) == size), key=_widest)
        for size in (1, 2, 3)
    }


def text(found: Mapping[str, Any], most: int = 10) -> str:
    """Formats the summary as a table."""
    lines = [f"{'measures':<40} {'bits':>5} {'cells':>6} {'good':>5}"]
    for sets in found.values():
        for s in sets[:most]:
            names = ", ".join(s["measures"])
            lines.append(f"{names:<40} {s['bits']:5.2f} {s['cells']:6.2f} {s['good']:5.2f}")
    return "\n".join(lines) + "\n"


def _widest(found: Mapping[str, Any]) -> tuple[float, list[str]]:
    return -found["bits"], found["measures"]


def _spread(rows: Sequence[Mapping[str, Any]], names: Iterable[str]) -> dict[str, float]:
    of_kernels = []
    for r in rows:
        cells = list(zip(*(r["bins"][n] for n in names), strict=True))
        fastest: dict[Cell, float] = {}
        for at, us in zip(cells, r["us"], strict=True):
            fastest[at] = min(us, fastest.get(at, us))
        good = sum(us <= GOOD * min(r["us"]) for us in fastest.values())
        of_kernels.append((_bits(Counter(cells)), len(fastest), good))
    keys = ("bits", "cells", "good")
    return {k: round(mean(v), 3) for k, v in zip(keys, zip(*of_kernels), strict=True)}


def _bits(counts: Counter[Cell]) -> float:
    whole = sum(counts.values())
    return -sum(n / whole * log2(n / whole) for n in counts.values())


def _search(kernel: str, machine: Machine, asked: argparse.Namespace) -> list[Any]:
    """Returns the outcomes of a search. Each candidate is compared with the reference at small
    sizes."""
    file = LIBRARY / f"{kernel}.kir"
    if not file.is_file():
        known = ", ".join(p.stem for p in sorted(LIBRARY.glob("*.kir")))
        raise KernelError(f"no kernel `{kernel}`", where="--kernels", allowed=known)
    found = parse_workload(file.read_text(encoding="utf-8"), str(file))
    spec, name = spec_text(found.spec), machine.backends[0]
    settings = Settings(
        kernel,
        spec,
        machine.name,
        (name,),
        found.timed_sizes,
        found.checks,
        seed=asked.seed,
        evaluations=asked.evaluations,
        roofline_share=float("inf"),
        policy=asked.policy,
    )
    bench = Bench(
        spec, machine, partial(backend_for, machine, name), found.timed_sizes, found.checks
    )
    with LocalEvaluator([bench], 1) as local:
        store = Forgetful()
        search = Search(
            settings,
            Cached(local, store),
            store,
            machines={name: machine},
            policy=policy(asked.policy),
            operators=local_operators(),
        )
        return list(search.run().outcomes.values())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="spread",
        description=(__doc__ or "").split("\n\n")[0],
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--target", required=True, help="a target, by name")
    parser.add_argument(
        "--kernels", default=",".join(KERNELS), help="library kernels, separated by commas"
    )
    parser.add_argument("--evaluations", type=int, default=48, help="evaluations of each kernel")
    parser.add_argument("--policy", default="random", help="the policy of the search")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True, help="the result file")
    return parser


if __name__ == "__main__":
    sys.exit(main())
