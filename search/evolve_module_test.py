"""A PyTorch module's kernels are evolved by the command, or it reports in a line why not."""

import json
import os
import re
import subprocess
import sys
import tomllib

import pytest

from testing.cli.command import GUARD, evolve, evolve_here

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
TWICE = """import torch

class Model(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.first, self.second = torch.nn.Linear(n, n), torch.nn.Linear(n, n)

    def forward(self, x):
        return {"y": torch.relu(self.second(torch.relu(self.first(x))))}

def get_inputs():
    return [torch.rand(3, 4)]

def get_init_inputs():
    return [4]
"""
USE = """import sys, torch
sys.path.insert(0, "")
import new
models = []
for kind in (new.Model, new.ModelNew):
    torch.manual_seed(0)
    models.append(kind(*new.get_init_inputs()))
given = new.get_inputs()
with torch.no_grad():
    theirs, ours = (m(*given) for m in models)
torch.testing.assert_close(ours, theirs)
torch.testing.assert_close(models[1](*given), theirs)  # in grad mode, as KernelBench times it
for wrong in ([torch.cat([x, x]) for x in given], [x.double() for x in given]):
    try:
        models[1](*wrong)
    except ValueError as error:
        assert "; allowed: torch.float32[3, 4]" in str(error), error
    else:
        raise AssertionError("it was not built for that")
"""
NULL = "--target=null"
IMPORTED = ("--target=h200", "--backend=triton")  # Python imports its kernels
GOOD = "return torch.softmax(torch.relu(x + y) * self.factor, dim=1)"


@pytest.fixture
def written(tmp_path):
    def write(body=GOOD, text=MODEL):
        (tmp_path / "model.py").write_text(text.replace("{body}", body))
        return tmp_path

    return write


def test_each_kernel_of_a_module_is_evolved(written):
    folder = written()
    done = evolve(folder, NULL, "--problem=model.py", "--evaluations=2", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    (run,) = found["runs"]
    assert run["kernel"].startswith("softmax_") and run["best_us"] and run["record"] is None
    assert not (folder / "kernels_generated").exists()
    (sums,) = found["problem"].pop("targets")
    assert found["problem"] == {"name": "model"}
    assert sums == {
        "target": "null",
        "steps": 1,
        "kernels": 1,
        "lacking": [],
        "time_kind": "modelled",
        "left_to_torch": [],
        "first_us": run["first_us"],
        "best_us": run["best_us"],
        "whole": dict.fromkeys(("first_us", "first_graph_us", "us", "graph_us")),
    }


@pytest.mark.parametrize("target", ["npu", pytest.param("mi300", marks=pytest.mark.slow)])
def test_positions_that_one_kernel_gives_another_lie_inside_its_tensors(written, target):
    body = (
        "v, i = torch.topk(x, 3, dim=1)\n"
        "        j = torch.argmax(y) // 2 + i * 2 % 10\n"
        "        return torch.gather(x, 1, i) * v + y[j.clamp(0, 9)]"
    )
    done = evolve_here(
        written(body),
        f"--target={target}",
        "--problem=model.py",
        "--evaluations=1",
        "--no-store",
        "--json",
    )
    assert done.returncode == 0, done.stderr
    (sums,) = json.loads(done.stdout)["problem"]["targets"]
    assert not sums["lacking"] and sums["best_us"] and sums["kernels"] > 1


def test_the_winners_of_a_module_are_a_solution_file(written):
    """It computes the same as the problem, even if all candidates are known to the store."""
    folder = written(text=TWICE)
    words = ("--problem=model.py", "--model-new=new.py", "--evaluations=1", "--store=s.db")
    done = evolve_here(folder, *IMPORTED, *words)
    assert done.returncode == 0, done.stderr
    assert "model on h200: 2 steps by 1 kernel; sum of best times " in done.stdout
    text = (folder / "new.py").read_text()
    found = os.pathsep.join(p or os.getcwd() for p in sys.path)
    environ = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": found}
    used = subprocess.run(
        [sys.executable, "-c", USE],
        cwd=folder,
        env=environ,
        text=True,
        capture_output=True,
        timeout=GUARD,
    )
    assert used.returncode == 0, used.stderr
    again = evolve_here(folder, *IMPORTED, *words)
    assert again.returncode == 2 and "--overwrite" in again.stderr
    (folder / "new.py").write_text("another")
    again = evolve_here(folder, *IMPORTED, *words, "--overwrite")
    assert again.returncode == 0 and (folder / "new.py").read_text() == text, again.stderr


def test_a_solution_file_leaves_nothing_to_pytorch(written):
    done = evolve_here(
        written(), *IMPORTED, "--problem=model.py", "--model-new=new.py", "--allow-torch=relu"
    )
    assert done.returncode == 2 and "`relu` is left to PyTorch" in done.stderr


def test_without_a_correct_candidate_there_is_no_solution_file(written):
    folder = written()
    done = evolve_here(
        folder,
        *IMPORTED,
        "--problem=model.py",
        "--model-new=new.py",
        "--seconds=0.001",
        "--no-store",
    )
    assert done.returncode == 1 and not (folder / "new.py").exists()
    assert "no correct candidate of softmax_" in done.stderr
    assert "no sum of times, without a correct softmax_" in done.stdout


def test_an_operator_is_left_to_pytorch_as_the_error_of_a_missing_one_says(written):
    folder = written("return torch.linalg.eigvalsh(torch.relu(x[:6, :6])) * self.factor + y[:6]")
    words = ("--problem=model.py", "--evaluations=1", "--no-store")
    done = evolve_here(folder, NULL, *words)
    assert done.returncode == 2 and done.stdout == ""
    (option,) = re.findall(r"--allow-torch \w+", done.stderr)
    assert "`aten._linalg_eigh` has no equations" in done.stderr and "eigvalsh(torch" in done.stderr
    done = evolve_here(folder, NULL, *words, *option.split(), "--report=r.html")
    assert done.returncode == 0, done.stderr
    assert "2 steps by 2 kernels, and _linalg_eigh by PyTorch, in no sum; sum of" in done.stdout
    assert "_linalg_eigh, in the module" in (folder / "r.html").read_text()
    done = evolve_here(folder, NULL, *words, *option.split(), "--json")
    found = json.loads(done.stdout)
    assert [row["left_to_torch"] for row in found["runs"]] == [["_linalg_eigh"]] * 2
    assert found["problem"]["targets"][0]["left_to_torch"] == ["_linalg_eigh"]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ("softmaxx", "did you mean"),
        ("relu,svd", "no call of `svd` is left to PyTorch"),
        ("relu,", "lacks a name"),
    ],
)
def test_what_cannot_be_left_to_pytorch_is_told(written, names, said):
    done = evolve_here(written(), NULL, "--problem=model.py", f"--allow-torch={names}")
    assert done.returncode == 2 and said in done.stderr and done.stdout == "", done.stderr
    assert "--allow-torch" in done.stderr and "Traceback" not in done.stderr


def test_a_module_that_pytorch_computes_whole_is_told(written):
    folder = written("return torch.relu(x)")
    done = evolve_here(folder, NULL, "--problem=model.py", "--allow-torch=relu")
    assert done.returncode == 2 and "PyTorch computes all of it" in done.stderr


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("raise ValueError('no luck')", "no luck"),
        ("return x if x.sum() > 0 else y", "decides by the values of its tensors"),
        ("return torch.linalg.eigh(x[:6, :6])[0] + y[0]", "has no equations"),
        ("return x + torch.rand(3)", "cannot be exported"),
        ("return (x + y).to(torch.complex64)", "a result is complex"),
    ],
)
def test_what_cannot_be_a_kernel_is_told_in_a_message(written, body, said):
    done = evolve_here(written(body), NULL, "--problem=model.py")
    assert done.returncode == 2 and said in done.stderr, done.stderr
    assert done.stderr.startswith("evolve: ") and "Traceback" not in done.stderr
    assert "model.py" in done.stderr and done.stdout == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--problem=none.py",), "cannot read the problem: No such file"),
        (("--problem=none.py",), "hint: give the path of a file that exists"),
        (("--problem=model.py", "--kernel=softmax"), "do not go together"),
        (("--problem=model.py", "--shape=M=3"), "do not go together"),
        (("--reduced",), "--reduced is of a --problem"),
        (("--model-new=new.py",), "--model-new is of a --problem"),
        (("--overwrite",), "it is of --model-new"),
        (("--allow-torch=relu",), "--allow-torch is of a --problem or a --task"),
        (("--allow-torch=relu", "--resume=x", "--store=sqlite://"), "keeps its options"),
        (("--problem=model.py", "--model-new=model.py"), "already exists"),
        (("--problem=model.py", "--model-new=no/new.py"), "does not exist"),
        (("--problem=model.py", "--model-new=new.py"), "a file of Python cannot hold"),
        (("--problem=model.py", "--model-new=new.py", "--target=npu"), "not on 2"),
        (("--problem=model.py", "--resume=x", "--store=sqlite://"), "keeps its options"),
    ],
)
def test_wrong_use_is_told(written, words, said):
    done = evolve_here(written(), NULL, *words)
    assert done.returncode == 2 and said in done.stderr


def test_a_file_without_a_model_is_told(written):
    done = evolve_here(written(text="import torch\n"), NULL, "--problem=model.py")
    assert done.returncode == 2 and "Model" in done.stderr


CHAIN = "return torch.softmax(torch.relu(x + y) * self.factor, dim=1) @ torch.exp(y)"


def test_the_budget_of_a_call_goes_on_and_its_program_is_recorded(written):
    folder = written(CHAIN)
    words = (NULL, "--problem=model.py", "--store=s.db", "--json", "--out=records")
    done = evolve_here(folder, *words, "--evaluations=2")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    job, (row,) = found["job"], found["problem"]["targets"]
    assert (
        job["evaluations"] == 2 * row["kernels"]
        and job["budget"]["evaluations"] == 2 * row["kernels"]
    )
    assert all(r["network"] == "null" and not r["timed"] for r in job["searches"])
    (file,) = (folder / "records" / "programs").glob("*/null.null.toml")
    program = tomllib.loads(file.read_text())
    assert {k["name"] for k in program["kernels"]} == {r["kernel"] for r in found["runs"]}
    assert program["sum_us"] == row["best_us"] and program["first_sum_us"] == row["first_us"]
    more = evolve_here(
        folder,
        *words,
        "--overwrite",
        f"--resume={job['job']}",
        "--evaluations=9",
        "--report=r.html",
    )
    assert more.returncode == 0, more.stderr
    again = json.loads(more.stdout)
    assert again["job"]["evaluations"] == 9 and again["problem"]["targets"][0]["best_us"]
    other = written(GOOD)
    refused = evolve_here(other, *words, "--overwrite", f"--resume={job['job']}")
    assert refused.returncode == 2 and "which is no kernel of this file" in refused.stderr
