"""Code for the sizes of a check is built before the check, but not if the first sizes are wrong."""

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
    """A backend that compiles ahead. why: the reason if it cannot. wrong: whether results are
    wrong."""

    manifest = MANIFEST

    def __init__(self, why="", wrong=False):
        self.why, self.wrong, self.ahead, self.ran = why, wrong, [], []

    def emit(self, nest, machine):
        return "good"

    def build(self, source, nest, machine, folder):
        return Built(folder / "kernel.txt")

    def compile_at(self, built, nest, machine, every):
        assert all(sizes == TUNED for sizes in self.ran)
        self.ahead += every
        if self.why:
            raise BackendError("build", self.why)

    def run(self, built, nest, machine, sizes, inputs):
        self.ran.append(sizes)
        found = evaluate_storage(nest.spec, inputs, sizes)
        return {name: 0 * value if self.wrong else value for name, value in found.items()}

    def time(self, built, nest, machine, sizes, inputs):
        return Timing(5.0, "measured", outputs=self.run(built, nest, machine, sizes, inputs))

    def available(self, machine):
        return {"correct_by": "device", "time_kind": "measured"}


def evaluated(backend, folder, seen):
    bench = Bench(spec_text(SPEC), CHIP, lambda: backend, TUNED, ({"M": 3},), secret="abc")
    asked = Candidate(spec_text(SPEC), str(autoschedule(SPEC, CHIP, TUNED)), "chip", "tongue")
    return Stages.of(bench).evaluate(asked, folder, seen.append)


@pytest.mark.parametrize("why", ["", "line 3: too many registers"])
def test_code_for_the_sizes_of_a_check_is_built_before_it(tmp_path, why):
    backend, seen = Ahead(why), []
    found = evaluated(backend, tmp_path, seen)
    assert TUNED in backend.ahead and {"M": 3} in backend.ahead
    assert all(sizes in backend.ahead for sizes in backend.ran)
    if why:
        assert (found.stage, found.kind, found.reason) == ("build", "refused", why)
        assert {"M": 3} not in backend.ran
    else:
        assert isinstance(found, Evaluation) and len(backend.ran) > len(backend.ahead)
        assert seen == ["verify", "emit", "build", "check", "build", "check", "time"]


def test_what_was_built_is_compared_once_and_errors_are_in_the_order_of_sizes(tmp_path):
    backend = Ahead()
    found = evaluated(backend, tmp_path, [])
    sizes = [error.sizes for error in found.errors]
    assert sizes[0] == {"M": 3} and sizes.count(TUNED) == 1
    assert backend.ran[0] == TUNED and sizes[0] in backend.ran


def test_what_is_wrong_where_it_was_built_needs_no_further_code(tmp_path):
    backend, seen = Ahead(wrong=True), []
    found = evaluated(backend, tmp_path, seen)
    assert (found.stage, found.kind) == ("check", "wrong")
    assert not backend.ahead and set(map(str, backend.ran)) == {str(TUNED)}
    assert seen == ["verify", "emit", "build", "check"]
