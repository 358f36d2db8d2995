"""Evaluates one candidate in the sandbox, without a pool of workers."""

from __future__ import annotations

import os
import tempfile
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path

from search.core.candidate import Candidate
from search.core.evaluation import MACHINE, Evaluated, Failure, from_json, to_json
from search.evaluator.sandbox import environment
from search.evaluator.stages import Stages
from search.evaluator.worker import attempt, become_reaper


def evaluated_alone(stages: Stages, asked: Candidate) -> Evaluated:
    """The outcome of a candidate in its own sandboxed process, as in a worker. The process ends
    with everything that it started."""
    here, there = Pipe()
    with tempfile.TemporaryDirectory(prefix="speciate-") as home:
        child = os.fork()
        if child == 0:
            here.close()
            _serve(stages, asked, Path(home), there)
        there.close()
        try:
            return from_json(here.recv_bytes().decode())
        except EOFError:
            return Failure("verify", MACHINE, "the process that had it died")
        finally:
            here.close()
            os.waitpid(child, 0)


def _serve(stages: Stages, asked: Candidate, home: Path, there: Connection) -> None:
    """The child, in the role of a worker: orphans of the candidate become its children. Does not
    return."""
    try:
        become_reaper()
        kept = environment(os.environ)
        os.environ.clear()
        os.environ.update(kept)
        there.send_bytes(to_json(attempt(stages, asked, home, there)).encode())
    finally:
        os._exit(0)
