"""Compilers that hang, die, or complain and go on: each is a stored failure, and the next candidate
is evaluated."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from backends.backend import Backend, Built
from backends.registry import backend_for, target
from backends.triton.backend import Triton
from backends.triton.build import compile as compiler
from ir.autoschedule.autoschedule import autoschedule
from ir.parse.parse import parse_workload
from ir.print import spec_text
from search.core.candidate import Candidate
from search.core.evaluation import Evaluation, Failure
from search.core.settings import Settings
from search.evaluator.local import LocalEvaluator
from search.evaluator.sandbox import Limits
from search.evaluator.stages import Bench
from search.store.store import Store

CHIP = "h200"
SOURCES = Path(compiler.__file__).parents[1] / "testdata"
SECONDS = 3.0  # that a source which hangs may take to compile
GUARD = 1800.0  # seconds: only what hangs waits so long
SIZES = {"M": 16, "N": 64}
WORKLOAD = parse_workload(
    '''def scale(x: f32[M, N]) -> f32[M, N]:
    """Twice and one more."""
    y[m, n] = 2.0 * x[m, n] + 1.0
    return y

tune(M=16, N=64)
check(M=3, N=5)
'''
)
SPEC = spec_text(WORKLOAD.spec)
# By source: the kind of the failure, and what its reason says.
FAULTS = {
    "hangs": ("timeout", "still at it after 3 s"),
    "hangs_compiling": ("timeout", "still at it after 3 s"),
    "aborts": ("crash", "died of SIGABRT"),
    "says_error": ("refused", "reported an error and went on: kernel.s:1:2: error"),
    "bad_assembly": ("refused", "no_such_instruction"),
    "refused": ("refused", "unsupported AST node"),
}


def impatient() -> Backend:
    """The chip's backend, in a hurry with what hangs, and without its check of what a source may
    hold: no text that passes it makes a compiler do all this at will."""
    build = compiler.build

    def hurried(source: str, *given: Any) -> Built:
        compiler.SECONDS = SECONDS if source in hanging else GUARD
        return build(source, *given)

    hanging = [text(name) for name, (kind, _) in FAULTS.items() if kind == "timeout"]
    compiler.build = hurried
    Triton.admit = staticmethod(lambda source: None)
    return backend_for(target(CHIP))


def text(name: str) -> str:
    """The source of a name."""
    return (SOURCES / f"{name}.py").read_text(encoding="utf-8")


def candidate(source: str | None) -> Candidate:
    schedule = str(autoschedule(WORKLOAD.spec, target(CHIP), SIZES))
    return Candidate(
        SPEC, schedule, CHIP, target(CHIP).backends[0], text(source) if source else None
    )


@pytest.fixture(scope="module")
def evaluated():
    """What became of every source and of a good one after them, with their candidates."""
    asked = {name: candidate(name) for name in FAULTS} | {"": candidate(None)}
    bench = Bench(
        SPEC, target(CHIP), impatient, SIZES, WORKLOAD.checks, limits=Limits(seconds=GUARD)
    )
    pickle.loads(pickle.dumps(bench))
    with LocalEvaluator([bench], workers=1) as evaluator:
        found = dict(evaluator.evaluate(list(asked.values())))
    return {name: (asked[name], found[n]) for n, name in enumerate(asked)}


@pytest.mark.parametrize("name", FAULTS)
def test_a_source_that_does_not_compile_is_a_failure_of_its_kind(evaluated, name):
    _, outcome = evaluated[name]
    kind, words = FAULTS[name]
    assert isinstance(outcome, Failure), outcome
    kinds = (kind, "machine") if kind == "timeout" else (kind,)  # the latter on a busy machine
    assert outcome.stage == "build" and outcome.kind in kinds, outcome
    assert words in outcome.reason


def test_a_good_one_after_them_is_evaluated(evaluated):
    assert isinstance(evaluated[""][1], Evaluation), evaluated[""][1]


def test_all_are_stored_as_they_came(evaluated, tmp_path):
    store = Store(str(tmp_path / "store.db"))
    settings = Settings("scale", SPEC, CHIP, target(CHIP).backends[:1], SIZES, WORKLOAD.checks)
    run = store.start(settings, {})
    store.asked(run, 0, [asked for asked, _ in evaluated.values()], 0.0)
    for asked, outcome in evaluated.values():
        store.evaluated(run, asked.key, "here", outcome, 1.0)
    kept = store.load(run).outcomes
    store.close()
    assert kept == {asked.key: outcome for asked, outcome in evaluated.values()}
