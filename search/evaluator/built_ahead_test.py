"""Code for the sizes of a check is built before it."""

import pytest

from backends.backend import BackendError, Built, Timing
from ir.autoschedule.autoschedule import autoschedule
from ir.print import spec_text
from ir.reference.reference import evaluate_storage
from search.core.candidate import Candidate
from search.core.evaluation import Evaluation
from search.evaluator.stages import Bench, Stages
from search.evaluator.testing.acting import CHIP, MANIFEST, SPEC

TUNED = {"M": 64}


class Ahead:
    """A backend that is always right and compiles beforehand; why: it cannot."""

    manifest = MANIFEST

    def __init__(self, why):
        self.why, self.ahead, self.ran = why, [], []

    def emit(self, nest, machine):
        return "good"

    def build(self, source, nest, machine, folder):
        return Built(folder / "kernel.txt")

    def compile_at(self, built, nest, machine, every):
        assert not self.ran
        self.ahead += every
        if self.why:
            raise BackendError("build", self.why)

    def run(self, built, nest, machine, sizes, inputs):
        self.ran.append(sizes)
        return dict(evaluate_storage(nest.spec, inputs, sizes))

    def time(self, built, nest, machine, sizes, inputs):
        return Timing(5.0, "measured", outputs=self.run(built, nest, machine, sizes, inputs))

    def available(self, machine):
        return {"correct_by": "device", "time_kind": "measured"}


@pytest.mark.parametrize("why", ["", "line 3: too many registers"])
def test_code_for_the_sizes_of_a_check_is_built_before_it(tmp_path, why):
    backend, seen = Ahead(why), []
    bench = Bench(spec_text(SPEC), CHIP, lambda: backend, TUNED, ({"M": 3},), secret="abc")
    asked = Candidate(spec_text(SPEC), str(autoschedule(SPEC, CHIP, TUNED)), "chip", "tongue")
    found = Stages.of(bench).evaluate(asked, tmp_path, seen.append)
    assert TUNED in backend.ahead and {"M": 3} in backend.ahead
    assert all(sizes in backend.ahead for sizes in backend.ran)
    if why:
        assert (found.stage, found.kind, found.reason) == ("build", "refused", why)
        assert not backend.ran
    else:
        assert isinstance(found, Evaluation) and len(backend.ran) > len(backend.ahead)
        assert seen == ["verify", "emit", "build", "build", "check", "time"]
