"""Traces: the timeline of a candidate, made in a sandboxed process."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from pathlib import Path

import numpy as np

from backends.backend import BackendError
from ir.errors import KernelError
from ir.reference.inputs import random_inputs
from search.cli.promote import source
from search.cli.suite import Problem
from search.core.candidate import Candidate
from search.core.lowered import nest_of, spec_of
from search.evaluator.groups import Group
from search.evaluator.sandbox import Limits, enter, grouped, homes
from search.evaluator.stages import SEED

TRACE_FILE = "trace.json"
TRACE_FAULT = "fault.txt"
TRACE_SECONDS = 120.0


def trace(problem: Problem, candidate: Candidate) -> bytes:
    """The trace of a candidate at the tuning sizes, in Chrome's format. Raises KernelError if it
    cannot be made.

    The kernel runs in a sandboxed process, as in its evaluation.
    """
    served = problem.served[candidate.backend]
    # The trace is read from the folder afterwards, so no other file system may be mounted there.
    limits = Limits(files=None).suited(served.backend.available(served.machine))
    with tempfile.TemporaryDirectory(prefix="speciate-") as home:
        folder, group = Path(home), grouped(limits)
        context = multiprocessing.get_context("fork")
        child = context.Process(target=_profile, args=(problem, candidate, folder, limits, group))
        child.start()
        child.join(TRACE_SECONDS)
        if child.is_alive():
            child.kill()
            child.join()
        if group:
            group.remove()
        if (folder / TRACE_FILE).is_file() and child.exitcode == 0:
            return (folder / TRACE_FILE).read_bytes()
        said = (folder / TRACE_FAULT).read_text() if (folder / TRACE_FAULT).is_file() else ""
        why = said or f"its process ended with {child.exitcode}"
        raise KernelError(f"no timeline could be made: {why}")


def _profile(
    problem: Problem, candidate: Candidate, folder: Path, limits: Limits, group: Group | None
) -> None:
    served, sizes = problem.served[candidate.backend], problem.settings.sizes
    machine, backend = served.machine, served.backend
    spec = spec_of(problem.settings.spec)
    inputs = random_inputs(spec, sizes, np.random.default_rng(SEED))
    nest = nest_of(candidate, machine, sizes)
    text = source(problem, candidate)
    enter(folder, limits, group)
    os.environ.update(homes(folder))
    tempfile.tempdir = None  # the previous folder is not writable any more
    try:
        built = backend.build(text, nest, machine, folder)
        backend.profile(built, nest, machine, sizes, inputs, folder / TRACE_FILE)
    except BackendError as error:
        (folder / TRACE_FAULT).write_text(str(error))
        raise SystemExit(1) from None
