"""A problem's `ModelNew`: its solution file, with seed schedules or with the results of a
search."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backends.compiled import Kernels, networks
from backends.registry import backend_for, target
from benchmarks.kernelbench.prepared import imported_problem, read_problem, rounding
from frontends.kernelbench.model_new import solution
from frontends.pytorch.external import outside
from ir.partition.choices import Choices
from search.cli.modules import constants_of, kernel_text, repeats
from search.record.program import network_digest
from search.whole.ways import way
from speciate.records import known_network


@dataclass(frozen=True, slots=True)
class ModelNewJob:
    """The task of writing a file."""

    path: Path  # Path of the problem.
    target: str
    reduced: bool
    file: Path  # A new file.
    products: str  # Products of convolutions: see `Wanted`.
    records: Path | None = None  # Records of a search. None: all kernels have seed schedules.


def write_model_new(job: ModelNewJob) -> dict[str, Any]:
    """Writes a solution file, and returns its facts. Raises KernelError for what is not
    supported."""
    problem = read_problem(job.path, job.reduced)
    _, made = imported_problem(problem)
    machine = target(job.target)
    backend = backend_for(machine)
    knows, choices = None, Choices(asked=False)
    if job.records is not None:
        digest = network_digest(made.spec, made.aliases, made.fixed)
        knows, choices = known_network([job.records], digest, machine, backend)
    rounded, least = rounding(job.products)
    kernels = Kernels(machine, backend, rounded, guessed=True, knows=knows, least=least)
    found = way(
        lambda k, c: networks(made.spec, {}, made.aliases, k, outside(made), made.fixed, c),
        kernels,
        choices,
    )
    texts = {spec.name: kernel_text(*kernels.emit(spec)) for spec in found.call.kernels()}
    constants, again = constants_of(found, kernels), repeats([backend])
    text = solution(problem, made).text(found.call, texts, constants, again)
    job.file.write_text(text, encoding="utf-8")
    return {
        "steps": len(found.call.steps),
        "kernels": len(texts),
        "by_records": len(knows.used) if knows else 0,
    }
