"""A PyTorch module's kernels are evolved by the command, or it says in a line why not."""

import json
import os
import subprocess
import sys

import pytest

MODEL = """import torch

class Model(torch.nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x, y):
        {body}

def get_inputs():
    return [torch.rand(6, 10), torch.rand(10)]

def get_init_inputs():
    return [3.0]
"""
GOOD = "return torch.softmax(torch.relu(x + y) * self.factor, dim=1)"


def evolve(folder, *words):
    environ = {**os.environ, "HOME": str(folder),
               "PYTHONPATH": os.pathsep.join(p or os.getcwd() for p in sys.path),
               "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"),
               "BUILD_WORKING_DIRECTORY": str(folder)}  # fmt: skip
    return subprocess.run(
        [sys.executable, "-m", "search.evolve", "--target=null", "--workers=1", *words],
        env=environ, text=True, capture_output=True, timeout=300,
    )  # fmt: skip


@pytest.fixture
def written(tmp_path):
    def write(body=GOOD, text=MODEL):
        (tmp_path / "model.py").write_text(text.replace("{body}", body))
        return tmp_path

    return write


def test_each_kernel_of_a_module_is_evolved(written):
    folder = written()
    done = evolve(folder, "--problem=model.py", "--evaluations=2", "--json")
    assert done.returncode == 0, done.stderr
    (run,) = json.loads(done.stdout)["runs"]
    assert run["kernel"].startswith("softmax_") and run["best_us"] and run["record"] is None
    assert not (folder / "kernels_generated").exists()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("raise ValueError('no luck')", "no luck"),
        ("return x if x.sum() > 0 else y", "decides by the values of its tensors"),
        ("return torch.linalg.eigh(x[:6, :6])[0] + y[0]", "has no equations"),
        ("return x + torch.rand(3)", "cannot be exported"),
        ("return (x + y).to(torch.complex64)", "complex64"),
    ],
)
def test_what_cannot_be_a_kernel_is_told_in_a_message(written, body, said):
    done = evolve(written(body), "--problem=model.py")
    assert done.returncode == 2 and said in done.stderr, done.stderr
    assert done.stderr.startswith("evolve: ") and "Traceback" not in done.stderr
    assert "model.py" in done.stderr and done.stdout == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--problem=none.py",), "cannot read the problem"),
        (("--problem=model.py", "--kernel=softmax"), "do not go together"),
        (("--problem=model.py", "--shape=M=3"), "do not go together"),
        (("--reduced",), "--reduced is of a --problem"),
    ],
)
def test_wrong_use_is_told(written, words, said):
    done = evolve(written(), *words)
    assert done.returncode == 2 and said in done.stderr


def test_a_file_without_a_model_is_told(written):
    done = evolve(written(text="import torch\n"), "--problem=model.py")
    assert done.returncode == 2 and "Model" in done.stderr
