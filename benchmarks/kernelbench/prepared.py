"""A prepared problem: imported, partitioned and emitted for a target, saved without a build.

It needs no device, and no memory for tensors: the problem's tensors have no values here, unless the
value of a constant determines the computation.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from backends.backend import Built
from backends.compiled import Compiled, Kernel, Kernels, networks
from backends.program.saved import contents
from backends.registry import backend_for, target
from backends.shares import others
from benchmarks.kernelbench.suite import SEED
from frontends.aten.convolution import SUM
from frontends.compiled.saved import write
from frontends.kernelbench.problem import Problem, ProblemRun
from frontends.kernelbench.scaled import scaled
from frontends.pytorch.imported import Imported
from frontends.pytorch.module import imported
from ir.contraction import contraction
from ir.digest import text_digest
from ir.errors import KernelError
from ir.network import Network
from ir.partition.canonical import stem
from ir.partition.choices import Choices
from ir.spec import DTYPES
from ir.variant.derived import copy_of
from ir.variant.precision import NARROW
from search.record.program import network_digest
from search.whole.ways import Networks
from speciate.records import known_network

ROUNDED = (SUM,)  # The sums whose operands may be rounded.
# Rounding of the operands of convolutions: to TF32, as PyTorch does with its default flags; to TF32
# unless they sum so few channels that a TF32 unit is not filled, which PyTorch computes in f32;
# none.
TF32, TF32_OF_MANY, F32 = "tf32", "tf32_of_many", "f32"
PRODUCTS = (TF32, TF32_OF_MANY, F32)
FEW = 16
RECORD, PROBLEM, FACTS = "record", "problem.py", "facts.json"


@dataclass(frozen=True, slots=True)
class Wanted:
    """The subject of a preparation."""

    path: Path
    target: str
    reduced: bool
    folder: Path  # A new folder for it.
    products: str = TF32  # Products of convolutions.
    # Records of kernels that a search found. None: all have seed schedules.
    records: Path | None = None


def prepare(wanted: Wanted) -> dict[str, Any]:
    """Saves the program, the problem's text and its facts. Returns the facts.

    Raises KernelError for what is not supported.
    """
    began = time.perf_counter()
    problem = read_problem(wanted.path, wanted.reduced)
    given, made = imported_problem(problem)
    imported_at = time.perf_counter()
    machine = target(wanted.target)
    backend = backend_for(machine)
    rounded, least = rounding(wanted.products)
    knows, choices, more = None, Choices(asked=False), others(machine)
    if wanted.records is not None:
        knows, choices = known_network(
            [wanted.records], digest_of(made), machine, backend, others=more
        )
    kernels = Kernels(
        machine, backend, rounded, guessed=True, knows=knows, others=more, least=least
    )
    network, before = networks_of(made)(kernels, choices)
    wanted_kernels = (*network.kernels(), *(before.kernels() if before else ()))
    emitted = {
        s: Kernel(s, *kernels.emit(s), Built(Path()), served=kernels.served[s])
        for s in wanted_kernels
    }
    run = Compiled(network, machine, kernels.backend, emitted, before)
    write(made, contents(run), wanted.folder / RECORD, {}, overwrite=True)
    (wanted.folder / PROBLEM).write_text(problem.source, encoding="utf-8")
    held = [*tree_leaves(given.inputs), *given.model.parameters()]
    facts = {
        "equations": len(made.spec.equations),
        "steps": len(network.steps),
        "kernels": len(network.kernels()),
        "kernels_of_constants": len(emitted) - len(network.kernels()),
        "backends": dict(Counter(run.served(emitted[s.spec]).name for s in network.steps)),
        "launches": sum(len(emitted[s.spec].nest.launches) for s in network.steps),
        "import_s": round(imported_at - began, 2),
        "schedule_s": round(time.perf_counter() - imported_at, 2),
        "bytes": sum(DTYPES[b.dtype] * prod(b.shape) for b in network.buffers),
        "shapes": [list(t.shape) for t in given.inputs if isinstance(t, torch.Tensor)],
        "parameters": sum(t.numel() for t in held if isinstance(t, torch.nn.Parameter)),
        "rounded": sorted(_precisions(run)),
        "imported_by": f"torch {torch.__version__}",
        "digest": text_digest("\n".join(emitted[s].source for s in wanted_kernels)),
        "seed": SEED,  # Seed of the inputs of its checks.
        "by_records": len(knows.used) if knows else 0,
    }
    (wanted.folder / FACTS).write_text(json.dumps(facts), encoding="utf-8")
    return facts


def rounding(products: str) -> tuple[tuple[str, ...], int]:
    """Returns the sums whose operands may be rounded, and their minimum number of channels: see
    `Kernels`."""
    return () if products == F32 else ROUNDED, FEW if products == TF32_OF_MANY else 0


def _precisions(run: Compiled) -> set[str]:
    """Returns the precisions of f32 products, as `convolution: tf32`."""
    found: set[str] = set()
    for nest in (k.nest for k in run.kernels.values()):
        found |= {f"{stem(d.subject)}: {d.option('dtype')}" for d in nest.schedule.of("precision")}
        copies = {copy_of(d): d.option("dtype") for d in nest.schedule.of("pack")}
        read = ((e, t) for e in nest.variant.equations for t in e.sources())
        found |= {f"{stem(e.target)}: {copies[t]}" for e, t in read if copies.get(t)}
        # Operands rounded by another kernel, or before calls, have no decision here.
        before = {t.name for t in nest.spec.inputs if t.dtype == NARROW}
        summed = (e for e in nest.variant.equations if contraction(e))
        found |= {f"{stem(e.target)}: {NARROW}" for e in summed if before & {*e.sources()}}
    return found


def networks_of(made: Imported) -> Networks:
    """Returns the partitions of a problem.

    What depends only on its parameters is computed before calls, and again when they change.
    """

    def made_of(kernels: Kernels, choices: Choices) -> tuple[Network, Network | None]:
        return networks(made.spec, {}, made.aliases, kernels, (), made.fixed, choices)

    return made_of


def digest_of(made: Imported) -> str:
    """Returns the digest of a problem's program records."""
    return network_digest(made.spec, made.aliases, made.fixed)


def read_problem(path: Path, reduced: bool) -> Problem:
    """Reads a problem from a file, at its own sizes or at reduced ones."""
    problem = Problem.read(path)
    return scaled(problem) if reduced else problem


def imported_problem(problem: Problem) -> tuple[ProblemRun, Imported]:
    """Returns the problem's call, without values if possible."""
    given = problem.made(fake=True)
    try:
        made = imported(given.model, given.inputs, name=problem.name)
        if all(getattr(t, "constant", t) is not None for t in made.constants.values()):
            return given, made
    except KernelError:
        pass  # It may depend on values. An error is then reported below.
    given = problem.made()
    return given, imported(given.model, given.inputs, name=problem.name)


def known_facts(folder: Path) -> dict[str, Any] | None:
    """Returns the facts of a prepared problem. None if it is not prepared."""
    file = folder / FACTS
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None
