"""Evaluation needs few packages, because machines with a device may have no others."""

import os
import subprocess
import sys

from testing.cli.beginnings import hiding

HIDING = hiding("sqlalchemy", "rich", "pybind11", "pytest", "hypothesis")
USE = """
import search.evaluator.cache, search.evaluator.worker, search.cli.session
import search.display.display
from functools import partial
from backends.registry import backend_for, target, target_names
from ir.autoschedule.autoschedule import autoschedule
from ir.parse.parse import parse_spec
from search.core.candidate import Candidate
from search.evaluator.local import LocalEvaluator
from search.evaluator.stages import Bench
(name,) = set(target_names(for_tests=True)) - set(target_names())
machine, text = target(name), '''def twice(x: f32[M]) -> f32[M]:
    "Double x."
    y[m] = x[m] * 2.0
    return y
'''
schedule = str(autoschedule(parse_spec(text), machine, {"M": 8}))
bench = Bench(text, machine, partial(backend_for, machine), {"M": 8})
with LocalEvaluator([bench], workers=1) as evaluator:
    asked = Candidate(text, schedule, name, machine.backends[0])
    print(dict(evaluator.evaluate([asked]))[0].time_kind)
"""


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p or os.getcwd() for p in sys.path)},
        capture_output=True,
        text=True,
    )


def test_a_candidate_is_evaluated_without_what_only_the_command_needs():
    done = run(HIDING + USE)
    assert (done.stdout, done.returncode) == ("modelled\n", 0), done.stderr


def test_a_search_does_not_import_pytorch():
    """It takes longer to import than everything else that the command and its workers import."""
    done = run(
        "import sys, search.cli.execute, search.cli.suite, search.evaluator.nursery\n"
        "print('search.whole.plan' in sys.modules, 'torch' in sys.modules)"
    )
    assert (done.stdout, done.returncode) == ("True False\n", 0), done.stderr
