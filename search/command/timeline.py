"""The timeline of a winner: what its engines do and when, in Chrome's trace format."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from pathlib import Path

import numpy as np

from backends.backend import BackendError
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.parse.parse import parse_schedule, parse_spec
from ir.reference.inputs import random_inputs
from search.command.problem import Problem
from search.command.promotion import winner_source
from search.evaluator.sandbox import Limits, enter, homes
from search.evaluator.stages import SEED
from search.outcome import Outcome

FILE = "trace.json"
FAULT = "fault.txt"
SECONDS = 120.0


def timeline(problem: Problem, outcome: Outcome) -> bytes:
    """The trace of the best candidate; KernelError where it could not be had.

    The kernel runs in a sandboxed process of its own, as it did when it was evaluated.
    """
    with tempfile.TemporaryDirectory(prefix="speciate-") as home:
        folder = Path(home)
        context = multiprocessing.get_context("fork")
        child = context.Process(target=_profile, args=(problem, outcome, folder))
        child.start()
        child.join(SECONDS)
        if child.is_alive():
            child.kill()
            child.join()
        if (folder / FILE).is_file() and child.exitcode == 0:
            return (folder / FILE).read_bytes()
        said = (folder / FAULT).read_text() if (folder / FAULT).is_file() else ""
        raise KernelError(
            "no timeline could be made: " + (said or f"its process ended with {child.exitcode}"),
            where="--trace",
            hint="a backend may not be able to; leave --trace out",
        )


def _profile(problem: Problem, outcome: Outcome, folder: Path) -> None:
    assert outcome.best is not None, "a run without a correct candidate has no timeline"
    machine, sizes, backend = problem.machine, problem.settings.sizes, problem.backend
    spec = parse_spec(problem.settings.spec)
    inputs = random_inputs(spec, sizes, np.random.default_rng(SEED))
    formulation = parse_spec(outcome.best.formulation)
    nest = lower(formulation, parse_schedule(outcome.best.schedule), machine, sizes)
    source = winner_source(problem, outcome)
    enter(folder, Limits().suited(backend.available(machine)))
    os.environ.update(homes(folder))
    tempfile.tempdir = None  # what it was is no longer writable
    try:
        built = backend.build(source, nest, machine, folder)
        backend.profile(built, nest, machine, sizes, inputs, folder / FILE)
    except BackendError as error:
        (folder / FAULT).write_text(str(error))
        raise SystemExit(1) from None
