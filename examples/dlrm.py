"""A small recommendation model (DLRM, arXiv 1906.00091), imported, compiled, and run on a target.

    python3 -m examples.dlrm --target=NAME

prints its kernels and how far the results are from PyTorch's in float64. On the target's own device
it is run at larger sizes, against PyTorch eager and compiled, and a result file is written.
"""

from __future__ import annotations

import argparse
import copy
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

import torch
from torch import nn

from backends.registry import backend_for, target
from benchmarks.against_float64 import judged
from benchmarks.baselines import MODES
from benchmarks.called import CALL
from benchmarks.kernelbench import venue as venues
from benchmarks.kernelbench.opponents import opponents, time_fields
from benchmarks.results import Table, read, write
from frontends.compiled.module import CompiledModule, compile_module
from frontends.kernelbench.apart import apart
from ir.errors import KernelError

RESULTS = Path("benchmarks/results")
COPIES = ("Memcpy", "Memset")


@dataclass(frozen=True, slots=True)
class ModelSizes:
    """The sizes of the model."""

    batch: int  # rows of a call
    # Plain features. Each of `tables` has `rows` rows of `width` elements; a row of the batch adds
    # up `bag` rows of each.
    dense: int
    tables: int
    rows: int
    width: int
    bag: int
    hidden: int  # of both perceptrons


SMALL = ModelSizes(batch=8, dense=13, tables=4, rows=50, width=16, bag=3, hidden=32)
LARGE = ModelSizes(batch=4096, dense=13, tables=26, rows=100_000, width=64, bag=20, hidden=512)


class Dlrm(nn.Module):
    """Embedding bags and a perceptron, the products of all pairs of their vectors, and another
    perceptron: dense f32[B, 13], indices i64[tables, B, bag] -> f32[B, 1] in (0, 1)."""

    def __init__(self, s: ModelSizes) -> None:
        super().__init__()
        self.tables = nn.ModuleList(
            nn.EmbeddingBag(s.rows, s.width, mode="sum") for _ in range(s.tables)
        )
        self.bottom = nn.Sequential(
            nn.Linear(s.dense, s.hidden), nn.ReLU(), nn.Linear(s.hidden, s.width), nn.ReLU()
        )
        vectors = s.tables + 1
        pairs = vectors * (vectors - 1) // 2
        self.top = nn.Sequential(
            nn.Linear(s.width + pairs, s.hidden), nn.ReLU(), nn.Linear(s.hidden, 1), nn.Sigmoid()
        )
        below = torch.tril_indices(vectors, vectors, offset=-1)
        self.register_buffer("pairs", below[0] * vectors + below[1])

    def forward(self, dense: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
        bottom = self.bottom(dense)
        bags = [table(indices[n]) for n, table in enumerate(self.tables)]
        vectors = torch.stack([bottom, *bags], dim=1)
        products = torch.bmm(vectors, vectors.transpose(1, 2)).flatten(1)
        return self.top(torch.cat([bottom, products[:, self.pairs]], dim=1))


def inputs(s: ModelSizes, place: str) -> tuple[torch.Tensor, torch.Tensor]:
    """A batch, drawn at random."""
    dense = torch.randn(s.batch, s.dense, device=place)
    return dense, torch.randint(s.rows, (s.tables, s.batch, s.bag), device=place)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; exit code 2 for wrong use, 1 where a result is wrong."""
    parser = argparse.ArgumentParser(prog="dlrm", description=__doc__.splitlines()[0])
    parser.add_argument("--target", required=True, metavar="NAME")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help=f"the result file, else {RESULTS}/NAME/dlrm.json")
    parser.add_argument(
        "--rehearse",
        action="store_true",
        help="race small sizes by the interpreter, with made-up times",
    )
    asked = parser.parse_args(arguments)
    torch.manual_seed(asked.seed)
    try:
        machine = target(asked.target)
        obtained = backend_for(machine).available(machine)["correct_by"]
        if asked.rehearse or obtained == "device":
            if asked.rehearse and not asked.out:
                raise KernelError("a rehearsal is no result", hint="give it a file: --out=FILE")
            return race(asked, asked.out or RESULTS / machine.name / "dlrm.json")
        return shown(asked.target, obtained)
    except KernelError as error:
        print(f"dlrm: {error}", file=sys.stderr)
        return 2


def shown(name: str, obtained: str) -> int:
    """The small model, run once."""
    module = Dlrm(SMALL)
    run = compile_module(module, inputs(SMALL, "cpu"), target=name)
    for step in run.linked.network.steps:
        print(f"{step.spec.name}: {', '.join(e.target for e in step.spec.equations)}")
    given = inputs(SMALL, "cpu")
    with torch.no_grad():
        found = run(*given)
    eager, exact = _theirs(module, given)
    print(f"{_counted(run)} for {name}, by {obtained}")
    print(
        f"largest error against float64: {_error(found, exact):.1e}; PyTorch's own in f32: "
        f"{_error(eager, exact):.1e}"
    )
    return 0


def race(asked: argparse.Namespace, out: Path) -> int:
    """The large model against PyTorch, as a result file; the small one in a rehearsal."""
    sizes, venue = (SMALL if asked.rehearse else LARGE), venues.venue(asked.rehearse)
    facts = apart(venues.facts, asked.rehearse, gigabytes=None)
    row: Table = {
        "kernel": "dlrm",
        "problem": None,
        "dtype": "f32",
        "shape": asdict(sizes),
        "us": None,
        "correct_by": "interpreter" if asked.rehearse else "device",
        "degenerate": False,
        "evaluations": 0,
        "roofline_us": None,
        "roofline_share": None,
        "failures": {},
        "baselines_us": {},
        "fastest": None,
        "speedup": None,
    }
    with torch.no_grad():
        row |= _raced(asked.target, sizes, venue)
    command = f"python3 -m examples.dlrm --target={asked.target}"
    others = [r for r in read(out)["rows"] if r["shape"] != row["shape"]]
    write(out, {"command": command, "date": date.today().isoformat(), **facts}, [*others, row])
    print(f"{row['us']} us; {row['baselines_us']}; {row.get('reason', 'correct')}; {out}")
    return int(not row["correct"])


def _raced(name: str, sizes: ModelSizes, venue: venues.Venue) -> Table:
    module = Dlrm(sizes)
    run = compile_module(module.to(venue.place), inputs(sizes, venue.place), target=name)
    given = inputs(sizes, venue.place)
    found, eager, exact = run(*given), *_theirs(module, given)
    verdict = judged("f32", "f32", found, eager, exact, times=2.0)
    seen = venue.seen(run, given)
    launched = [n for n in seen if not n.startswith(COPIES)]
    own = run.linked.functions
    external = sorted(set(launched) - own)
    others, failures = opponents(module, given, venue, MODES, seconds=120)
    sets = [given, *(inputs(sizes, venue.place) for _ in range(3))]
    times = {n: venue.timed(call, sets) for n, call in others.items()}
    reason = verdict.reason or (f"other kernels ran: {external[:3]}" if external else "")
    row = {
        "correct": not reason,
        "rel_err": verdict.rel_err,
        "reference_rel_err": verdict.reference_rel_err,
        "time_kind": venue.time_kind,
        "own_kernels_only": None if not seen else not external,
        "launched": len(launched),
        "backend": run.linked.backend.manifest.name,
        "steps": len(run.linked.network.steps),
        "workspace_bytes": run.program.plan.bytes,
        "failures": failures,
        **time_fields({CALL: venue.timed(run, sets)}, times),
    }
    return row | ({"reason": reason} if reason else {})


def _theirs(
    module: nn.Module, given: tuple[torch.Tensor, ...]
) -> tuple[torch.Tensor, torch.Tensor]:
    """PyTorch's results, in f32 and in float64."""
    dense, indices = given
    with torch.no_grad():
        return module(*given), copy.deepcopy(module).double()(dense.double(), indices)


def _counted(run: CompiledModule) -> str:
    network = run.linked.network
    return f"{len(network.steps)} steps, {len(network.kernels())} kernels"


def _error(found: torch.Tensor, exact: torch.Tensor) -> float:
    return float((found.double() - exact).abs().max())


if __name__ == "__main__":
    sys.exit(main())
