"""Tests a search for a problem whose convolution PyTorch computes in TF32, through the program that
a race starts."""

import json

import pytest

from backends.registry import backend_for, target
from benchmarks.kernelbench.prepared import F32, TF32
from benchmarks.kernelbench.search import main
from ir.parse.parse import parse_workload
from search.core.candidate import Candidate
from search.core.evaluation import Evaluation, Failure
from search.evaluator.alone import evaluated_alone
from search.evaluator.stages import Bench, Stages
from search.record.record import RECORD, read_record

PROBLEM = """
import torch

class Model(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = torch.nn.Conv2d(32, channels, 3)

    def forward(self, x):
        return torch.relu(self.conv(x))

def get_inputs():
    return [torch.rand(2, 32, 10, 10)]

def get_init_inputs():
    return [32]
"""


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """Returns the program's notes and its record."""
    folder = tmp_path_factory.mktemp("searched")
    (folder / "problem.py").write_text(PROBLEM)
    words = [f"--problem={folder}/problem.py", "--target=h200", f"--records={folder}/records"]
    words += [f"--store={folder}/runs.db", f"--notes={folder}/notes.json", "--workers=1"]
    assert main([*words, "--evaluations=1", f"--products={TF32}"]) == 0
    (file,) = folder.glob(f"records/relu_*/*/{RECORD}")
    return json.loads((folder / "notes.json").read_text()), read_record(file.parent)


def test_a_kernel_whose_operands_may_be_rounded_is_searched_for(searched):
    notes, stored = searched
    assert notes["searched_kernels"] == 1 and notes["evaluations"] == 1
    assert stored.record.rounded == ("convolution",)
    assert "precision(convolution, dtype=tf32)" in stored.schedule


@pytest.mark.parametrize("products", [TF32, F32])
def test_it_is_right_for_those_alone_who_let_it_round(searched, products):
    _, stored = searched
    record, chip = stored.record, target("h200")
    work = parse_workload(stored.workload, record.kernel)
    rounded = record.rounded if products == TF32 else ()
    opens = lambda: backend_for(chip)  # noqa: E731
    text = stored.workload.partition("\n\n")[0] + "\n"
    bench = Bench(text, chip, opens, record.shape, work.checks, rounded=rounded)
    asked = Candidate(text, stored.schedule, chip.name, record.backend)
    found = evaluated_alone(Stages.of(bench), asked)
    if products == TF32:
        assert isinstance(found, Evaluation), found
    else:
        assert isinstance(found, Failure) and found.stage == "check", found
