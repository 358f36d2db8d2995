"""An exported module runs in a process that has PyTorch, and nothing of the project."""

import json
import subprocess
import sys

import pytest
import torch
from torch import nn

from frontends.compiled.module import compile_module
from ir.errors import KernelError

RUN = """
import json, sys
sys.path.append(sys.argv[1])
import torch
from loader import ExportError, load
run = load(sys.argv[1])
x, y = torch.load(sys.argv[2])
faults = []
for args, kwargs in (((x,), {}), ((x[:1], y), {}), ((x, y), {"scale": 3.0}), ((x, 1), {})):
    try:
        run(*args, **kwargs)
    except ExportError as error:
        faults.append(str(error))
torch.save([run(x, y), run(x.mT.contiguous().mT, y)], sys.argv[3])
names = {n.split(".")[0] for n in sys.modules}
assert not names & {"ir", "search", "backends", "frontends", "machines", "speciate"}, names
print(json.dumps(faults))
"""


class Net(nn.Module):
    """With a parameter that is the constant of a result, results in a mapping, an argument, and a result of
    which kernels store parts."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.last = nn.Linear(16, 5)
        self.beside = nn.Conv2d(3, 8, 3)

    def forward(self, x, y, scale=2.0):
        h = torch.relu(self.norm(self.first(x)))
        both = torch.cat([self.beside(x), self.first(x)], 1)
        z = self.last(h.flatten(2)) * scale + y
        return {"y": z, "x": x, "w": self.last.bias + 1.0, "both": both}


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    torch.manual_seed(4)
    module = Net().eval().requires_grad_(False)
    module.norm.running_var.uniform_(0.5, 2.0)
    x, y = torch.randn(2, 3, 6, 6), torch.randn(2, 4, 5)
    run = compile_module(module, (x, y), target="cpu")
    module.norm.weight.mul_(0.5)
    folder = tmp_path_factory.mktemp("exported") / "net"
    run.export(folder)
    return module, x, y, run, folder


def test_another_process_without_the_project_computes_the_same(exported, tmp_path):
    module, x, y, _, folder = exported
    given, made = tmp_path / "given.pt", tmp_path / "made.pt"
    torch.save([x, y], given)
    done = subprocess.run(
        [sys.executable, "-I", "-c", RUN, str(folder), str(given), str(made)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    for found in torch.load(made):
        for name, expected in module(x, y).items():
            torch.testing.assert_close(found[name], expected, rtol=1e-4, atol=1e-5)
    one, small, named, number = json.loads(done.stdout)
    assert one.startswith("the arguments are") and named.startswith("the arguments are")
    assert small == "argument 0 is torch.float32[1, 3, 6, 6], not torch.float32[2, 3, 6, 6]"
    assert number == "argument 1 is 1, not torch.float32[2, 4, 5]"


def test_a_folder_for_another_processor_is_refused(exported, tmp_path):
    from backends.program.loader import ExportError, load

    *_, run, _ = exported
    run.export(tmp_path / "net")
    file = tmp_path / "net" / "program.json"
    table = json.loads(file.read_text())
    for change, words in (
        ({"flags": ["avx9000"]}, "a processor with avx9000"),
        ({"machine": "vax"}, "it is for vax"),
    ):
        file.write_text(json.dumps(table | {"processor": table["processor"] | change}))
        with pytest.raises(ExportError, match=words):
            load(tmp_path / "net")


@pytest.mark.parametrize(
    ("module", "target", "words"),
    [
        (nn.BatchNorm1d(8), "cpu", "changes tensors"),
        (nn.Dropout(0.5), "cpu", "draws random numbers"),
        (nn.ReLU(), "null", "are no libraries of this computer"),
    ],
)
def test_what_a_loader_cannot_do_is_not_exported(module, target, words, tmp_path):
    x = torch.randn(4, 8)
    run = compile_module(module.requires_grad_(False), (x,), target=target)
    with pytest.raises(KernelError, match=words):
        run.export(tmp_path / "net")
    assert not (tmp_path / "net").exists()
