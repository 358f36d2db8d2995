"""Sources that never end, or take all memory, through the evaluator: each is a failure, the next one runs."""

import tempfile
from functools import partial
from pathlib import Path

import pytest

from backends.registry import backend_for, served_by, target
from ir.autoschedule.autoschedule import autoschedule
from ir.print import spec_text
from search.core.candidate import Candidate
from search.core.evaluation import Evaluation, Failure
from search.evaluator.local import LocalEvaluator
from search.evaluator.sandbox import Limits
from search.evaluator.stages import Bench
from tests.cheats.kernels import WORKLOADS
from tests.hostile.bombs import BOMBS, CASES
from tests.hostile.cases import KERNEL, TARGETS, emitted

LIMITS = Limits(cpu=20, seconds=40.0, memory=2 << 30, file=64 << 20, files=256 << 20)


@pytest.fixture(scope="module")
def temporary(tmp_path_factory):
    """Where the workers' folders lie."""
    before, tempfile.tempdir = tempfile.tempdir, str(tmp_path_factory.mktemp("temporary"))
    yield Path(tempfile.tempdir)
    tempfile.tempdir = before


@pytest.fixture(scope="module")
def evaluators(temporary):
    """A pool for each backend, which its cases share."""
    known: dict[str, LocalEvaluator] = {}

    def of(name: str) -> LocalEvaluator:
        if name not in known:
            machine, opened = _machine(name)
            can = opened().available(machine)
            if not can.get("correct_by"):
                pytest.skip(str(can.get("why")))
            workload = WORKLOADS[KERNEL]
            spec, sizes = spec_text(workload.spec), workload.tune
            bench = Bench(spec, machine, opened, sizes, workload.checks[:1], limits=LIMITS)
            known[name] = LocalEvaluator([bench], workers=1)
        return known[name]

    yield of
    for evaluator in known.values():
        evaluator.close()


def _machine(name):
    chip = target(TARGETS[name])
    return served_by(chip, backend_for(chip, name)), partial(backend_for, chip, name)


def _candidate(name, source):
    workload = WORKLOADS[KERNEL]
    schedule = autoschedule(workload.spec, _machine(name)[0], workload.tune)
    return Candidate(spec_text(workload.spec), str(schedule), TARGETS[name], name, source)


@pytest.mark.parametrize(("name", "what"), CASES)
def test_what_never_ends_is_ended(evaluators, temporary, name, what):
    place, texts = BOMBS[name]
    source = emitted(name)
    assert place in source
    edited = source.replace(place, texts[what] + place, 1)
    found, good = _evaluated(evaluators(name), name, edited, None)
    assert isinstance(found, Failure), found
    assert found.kind in ("refused", "wrong", "timeout", "memory", "crash", "machine"), found
    assert isinstance(good, Evaluation), good
    assert not [file for home in temporary.iterdir() for file in home.iterdir()]
    print(f"{name}: {what}: {found.stage} {found.kind}, {sum(found.seconds.values()):.1f} s")


def _evaluated(evaluator, name, *sources):
    found = dict(evaluator.evaluate([_candidate(name, source) for source in sources]))
    return [found[n] for n in range(len(sources))]
