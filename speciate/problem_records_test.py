"""The records of `evolve --problem` are those that `speciate.compile` looks for in a later process."""

import json

import pytest
import torch

import speciate
from backends.registry import backend_for, target
from speciate.records import Records
from speciate.subject import subject
from testing.cli.command import evolve

MODEL = """import torch

class Model(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(channels)
        self.last = torch.nn.Linear(channels, 5)
        self.eval()

    def forward(self, x):
        return torch.relu(self.last(self.norm(x))) * torch.exp(self.last.bias)

def get_inputs():
    return [torch.rand(7, 6)]

def get_init_inputs():
    return [6]
"""


@pytest.fixture(scope="module")
def evolved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("problem")
    (folder / "model.py").write_text(MODEL)
    words = ("--problem=model.py", "--evaluations=2", "--out=records", "--no-store", "--json")
    done = evolve(folder, "--target=npu", *words)
    assert done.returncode == 0, done.stderr
    names = {}
    exec(compile(MODEL, "model.py", "exec"), names)
    torch.manual_seed(3)
    return folder / "records", names["Model"](6).requires_grad_(False), json.loads(done.stdout)


def test_every_kernel_of_a_call_is_made_by_its_record(evolved):
    records, model, found = evolved
    x = torch.rand(7, 6)
    run = speciate.compile(model, (x,), target="npu", records=records)
    torch.testing.assert_close(run(x), model(x))
    names = {run["kernel"] for run in found["runs"]}
    assert names == {spec.name for spec in run.linked.network.kernels()}
    for name in names:
        assert run.sources[name] == (records / name / "npu" / "kernel.cc").read_text()


def test_what_depends_on_parameters_alone_is_computed_before_calls_and_in_no_sum(evolved):
    records, model, found = evolved
    made = subject(model, (torch.rand(7, 6),))
    machine = target("npu")
    knows = Records([records], machine, backend_for(machine))
    kernels = speciate.compiling.Kernels(machine, backend_for(machine), knows=knows)
    call, before = made.networks(kernels)
    (row,) = found["problem"]["targets"]
    assert before is not None and row["steps"] == len(call.steps)
    assert not {spec.name for spec in before.kernels()} & set(knows.used)
