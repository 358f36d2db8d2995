"""Kernels edited to do harm, through real backends: each is a failure, and the next one runs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from backends.registry import backend_for, target
from ir.autoschedule.autoschedule import autoschedule
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.machine import Machine
from ir.parse.parse import parse_workload
from ir.print import spec_text
from search.core.candidate import Candidate
from search.core.evaluation import Evaluation, Failure
from search.evaluator.local import LocalEvaluator
from search.evaluator.sandbox import Limits
from search.evaluator.stages import Bench

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
SPEC = spec_text(WORKLOAD.spec)
OUTSIDE = Path("/tmp/speciate-hostile-kernel-test-outside")


@dataclass(frozen=True)
class Harm:
    """An edit of a source: the first `place` becomes `text`, and what is to become of it."""

    place: str
    text: str
    stage: str
    kinds: tuple[str, ...]
    said: str


BEGUN = "  for (Index tile = pe.id()"  # where a kernel's work begins
STORED = "co_await pe.store(y_g, {Slice{m_at"
NOT_ADMITTED = ("build", ("refused",), "is not for a kernel")
CPP = {
    "loops for ever": Harm(
        BEGUN, "  for (Index i = 0; ; i = 1) {}\n" + BEGUN, "check", ("wrong",), "scalar operations"
    ),
    "eats memory": Harm(
        BEGUN,
        "  for (;;) { char* p = new char[1 << 26]; for (int i = 0; i < 1 << 26; i += 4096)"
        " p[i] = 1; }\n" + BEGUN,
        *NOT_ADMITTED,
    ),
    "writes over the simulator": Harm(BEGUN, "  *(volatile int*)8 = 1;\n" + BEGUN, *NOT_ADMITTED),
    "keeps what it has computed": Harm(
        BEGUN, "  static Index kept = 0;\n" + BEGUN, "build", ("refused",), "`static`"
    ),
    "stores out of bounds": Harm(
        STORED, STORED + " + 1000", "check", ("wrong", "refused"), "PE 0 at cycle"
    ),
}
NOT_A_LAUNCH = ("build", ("refused",), "is not for a launch")
LOADED = "import torch\n"  # what a Python module does when it is loaded
PYTHON = {
    "loops for ever": Harm(
        "    K = x.shape[1]\n",
        "    K = x.shape[1]\n    while True: pass\n",
        *NOT_A_LAUNCH,
    ),
    "eats memory": Harm(
        "    K = x.shape[1]\n",
        "    K = x.shape[1]\n    held = [list(range(1 << 24)) for _ in range(99)]\n",
        *NOT_A_LAUNCH,
    ),
    "loops when it is loaded": Harm(LOADED, "while True: pass\n", *NOT_ADMITTED),
    "ends its process": Harm(LOADED, "import os\nos._exit(0)\n", *NOT_ADMITTED),
    "kills its worker": Harm(
        LOADED, "import os\nos.kill(os.getppid(), 9)\n" + LOADED, *NOT_ADMITTED
    ),
    "writes elsewhere": Harm(LOADED, f"open({str(OUTSIDE)!r}, 'w')\n", *NOT_ADMITTED),
    "lets a library compute": Harm(
        "    K = x.shape[1]\n", "    return torch.mul(x, 2.0, out=y)\n", *NOT_ADMITTED
    ),
    "stores out of bounds": Harm(
        "tl.store(y_ptr +", "tl.store(y_ptr + 100000 +", "check", ("wrong", "refused"), "y"
    ),
}
CHIPS = {"npu_small": CPP, "mi300": PYTHON}
CASES = [(chip, name) for chip, harms in CHIPS.items() for name in harms]


def candidate(machine: Machine, harm: Harm | None) -> Candidate:
    """What the backend makes of the workload, edited to do harm if some is given."""
    schedule = autoschedule(WORKLOAD.spec, machine, SIZES)
    source = None
    if harm is not None:
        emitted = backend_for(machine).emit(lower(WORKLOAD.spec, schedule, machine, SIZES), machine)
        assert harm.place in emitted, emitted
        source = emitted.replace(harm.place, harm.text, 1)
    return Candidate(SPEC, str(schedule), machine.name, machine.backends[0], source)


@pytest.fixture(scope="module")
def outcomes():
    """What becomes of each harmful kernel of a chip, and of a good one after them, in one pool
    that all tests of the chip share; skips where the chip's backend can do nothing here."""
    known: dict[str, dict] = {}

    def of(chip: str) -> dict:
        if chip not in known:
            known[chip] = evaluated(target(chip), CHIPS[chip])
        return known[chip]

    return of


def evaluated(machine: Machine, harms: dict[str, Harm]) -> dict:
    try:
        can = backend_for(machine).available(machine)
    except KernelError as error:
        pytest.skip(error.what)
    if not can["correct_by"]:
        pytest.skip(can["why"])
    bench = Bench(
        SPEC,
        machine,
        partial(backend_for, machine),
        SIZES,
        WORKLOAD.checks,
        # What loops takes processor time; by the clock a good one may take long.
        limits=Limits(cpu=60, seconds=1800.0, memory=1 << 30),
    )
    asked = [candidate(machine, harm) for harm in (*harms.values(), None)]
    with LocalEvaluator([bench], workers=1) as evaluator:
        found = dict(evaluator.evaluate(asked))
    return {name: found[n] for n, name in enumerate([*harms, "good"])}


@pytest.mark.parametrize("chip, name", CASES, ids=[f"{c}-{n}" for c, n in CASES])
def test_a_harmful_kernel_is_a_failure_that_says_why(outcomes, chip, name):
    harm, found = CHIPS[chip][name], outcomes(chip)[name]
    assert isinstance(found, Failure), found
    assert found.stage == harm.stage and found.kind in harm.kinds, found
    assert harm.said in found.reason
    assert not OUTSIDE.exists()


@pytest.mark.parametrize("chip", CHIPS)
def test_a_good_kernel_after_them_is_evaluated(outcomes, chip):
    found = outcomes(chip)["good"]
    assert isinstance(found, Evaluation), found
    assert found.correct_by == backend_for(target(chip)).available(target(chip))["correct_by"]
