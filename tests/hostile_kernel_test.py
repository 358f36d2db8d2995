"""Kernels edited to do harm, through a real backend: each is a failure, and the next one runs."""

from __future__ import annotations

from functools import partial

import pytest

from backends.registry import backend_for, target
from ir.autoschedule import autoschedule
from ir.lower import lower
from ir.parse import parse_workload
from ir.print import spec_text
from search.candidate import Candidate
from search.evaluation import Evaluation, Failure
from search.evaluator.local import LocalEvaluator
from search.evaluator.sandbox import Limits
from search.evaluator.stages import Bench

MACHINE = target("npu_small")
SIZES = {"M": 16, "K": 64}
WORKLOAD = parse_workload(
    '''def twice(x: f32[M, K]) -> f32[M, K]:
    """Double x."""
    y[m, k] = x[m, k] * 2.0
    return y

tune(M=16, K=64)
check(M=3, K=5)
'''
)
OPENED = "  for (Index tile = pe.id()"  # where a kernel's work begins
STORED = "co_await pe.store(y_g, {Slice{m_at"
HARM = {
    "loops for ever": (OPENED, "  for (volatile int i = 0; ; i = 1) {}\n", ("timeout",), "still"),
    "eats memory": (
        OPENED,
        "  for (;;) { char* p = new char[1 << 26]; for (int i = 0; i < 1 << 26; i += 4096)"
        " p[i] = 1; }\n",
        ("memory", "crash"),
        "",
    ),
    "writes over the simulator": (OPENED, "  *(volatile int*)8 = 1;\n", ("crash",), "SIGSEGV"),
    "stores out of bounds": (STORED, None, ("wrong", "refused"), "PE 0 at cycle"),
}


def made() -> tuple[str, str]:
    """A legal schedule's text, and the source that it comes to."""
    schedule = autoschedule(WORKLOAD.spec, MACHINE, SIZES)
    nest = lower(WORKLOAD.spec, schedule, MACHINE, SIZES)
    return str(schedule), backend_for(MACHINE).emit(nest, MACHINE)


def candidate(source: str | None) -> Candidate:
    schedule, _ = made()
    return Candidate(spec_text(WORKLOAD.spec), schedule, MACHINE.name, "sim", source)


def harmful(name: str) -> Candidate:
    place, text, _, _ = HARM[name]
    _, source = made()
    assert place in source
    new = text + place if text else place.replace("m_at", "m_at + 1000")
    return candidate(source.replace(place, new, 1))


@pytest.fixture(scope="module")
def outcomes():
    """What becomes of each harmful kernel, and of a good one after them, in one pool."""
    bench = Bench(
        spec_text(WORKLOAD.spec), MACHINE, partial(backend_for, MACHINE), SIZES,
        WORKLOAD.checks, limits=Limits(cpu=15, seconds=60.0, memory=1 << 30),
    )  # fmt: skip
    asked = [*(harmful(name) for name in HARM), candidate(None)]
    with LocalEvaluator(bench, workers=1) as evaluator:
        found = dict(evaluator.evaluate(asked))
    return dict(zip([*HARM, "good"], (found[n] for n in range(len(asked))), strict=True))


@pytest.mark.parametrize("name", HARM)
def test_a_harmful_kernel_is_a_failure_that_says_why(outcomes, name):
    _, _, kinds, said = HARM[name]
    found = outcomes[name]
    assert isinstance(found, Failure), found
    assert found.stage == "check" and found.kind in kinds, found
    assert said in found.reason


def test_a_good_kernel_after_them_is_evaluated(outcomes):
    found = outcomes["good"]
    assert isinstance(found, Evaluation) and found.correct_by == "simulator", found
