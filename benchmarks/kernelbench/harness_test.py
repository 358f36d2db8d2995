"""Tests that `ModelNew` files are written and judged by a checkout's harness, here one that needs
no device."""

import json
import sys
import types

import pytest

from benchmarks.kernelbench import judged
from benchmarks.kernelbench.harness import commit, main, summary
from benchmarks.kernelbench.judged import AS_IS, TF32_OFF, replaced, verdict

PROBLEM = """
import torch

class Model(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.rand(n))

    def forward(self, x):
        return torch.relu(x @ x.T) * torch.exp(self.scale)

def get_inputs():
    return [torch.rand(8, 20)]

def get_init_inputs():
    return [8]
"""
# Kernels see some of its tensors in other shapes than PyTorch does.
GROUPS = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 12)
        self.norm = torch.nn.GroupNorm(4, 12)

    def forward(self, x):
        y = self.norm(self.linear(x).transpose(1, 2))
        return torch.logsumexp(y, dim=1, keepdim=True)

def get_inputs():
    return [torch.rand(2, 5, 8)]

def get_init_inputs():
    return []
"""
UNKNOWN = PROBLEM.replace("torch.relu(x @ x.T)", "torch.linalg.svdvals(x @ x.T)")
# Reports as much as the real one. It compares on the CPU, and rejects what is done with TF32 on.
EVAL = """
import importlib.util, os, tempfile
import dotenv, litellm
import torch
from pydantic import BaseModel

class KernelExecResult(BaseModel):
    compiled: bool = False
    correctness: bool = False
    metadata: dict = {}
    runtime: float = -1.0
    runtime_stats: dict = {}
    ref_runtime: float = -1.0
    ref_runtime_stats: dict = {}

def loaded(text):
    with tempfile.NamedTemporaryFile("w", suffix=".py", delete=False) as file:
        file.write(text)
    spec = importlib.util.spec_from_file_location("temp_module", file.name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    os.unlink(file.name)
    return module

def eval_kernel_against_ref(original_model_src, custom_model_src, num_correct_trials,
                            num_perf_trials, measure_performance, backend):
    theirs, ours = loaded(original_model_src), loaded(custom_model_src)
    made = []
    for kind in (theirs.Model, ours.ModelNew):
        torch.manual_seed(0)
        made.append(kind(*theirs.get_init_inputs()))
    with torch.no_grad():
        inputs = theirs.get_inputs()
        a, b = (model(*inputs) for model in made)
    right = torch.allclose(a, b, rtol=1e-4, atol=1e-4)
    said = {"tf32": torch.backends.cudnn.allow_tf32, "trials": num_correct_trials}
    stats = {"mean": 2.0, "std": 0.1, "min": 1.9, "max": 2.4, "num_trials": num_perf_trials, "device": "x"}
    return KernelExecResult(compiled=True, correctness=right, metadata=said, runtime=2.0,
                            runtime_stats=stats, ref_runtime=3.0)
"""


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    folder = tmp_path / "kb" / "src" / "kernelbench"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "eval.py").write_text(EVAL)
    level = tmp_path / "kb" / "KernelBench" / "level1"
    level.mkdir(parents=True)
    (level / "1_Relu.py").write_text(PROBLEM)
    (level / "2_Unknown.py").write_text(UNKNOWN)
    (level / "3_Groups.py").write_text(GROUPS)
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    return tmp_path / "kb"


def test_each_problem_has_the_harness_s_verdict_in_both_modes(checkout, tmp_path, capsys):
    words = [f"--kernelbench={checkout}", "--target=h200", f"--out={tmp_path}/r.json", "--rehearse"]
    words += ["--level=1", f"--work={tmp_path}/work", "--workers=1", "--problem-seconds=1800"]
    assert main([*words, "--only=1", "--until=write"]) == 0
    assert not (tmp_path / "r.json").exists()
    text = (tmp_path / "work" / "level1" / "1_Relu.py").read_text()
    assert "class ModelNew" in text
    assert main(words) == 1  # One has no file.
    table = json.loads((tmp_path / "r.json").read_text())
    right, wrong, groups = table["rows"]
    assert groups[TF32_OFF]["correctness"], groups
    for mode, tf32 in ((AS_IS, "True"), (TF32_OFF, "False")):
        found = right[mode]
        assert found["compiled"] and found["correctness"], found
        assert found["metadata"] == {"tf32": tf32, "trials": "5"}
        assert table["summary"]["all"][mode]["speedup"]["geometric_mean"] == 1.5
    assert "svd" in wrong["reason"] and AS_IS not in wrong
    assert table["harness"].startswith("eval.py ") and table["summary"]["level 1"]["problems"] == 3
    capsys.readouterr()
    main([*words, "--only=1"])
    assert "0 of 0 done" in capsys.readouterr().err


def test_wrong_use_is_told(checkout, tmp_path, capsys):
    words = ["--level=1", f"--out={tmp_path}/r.json", f"--work={tmp_path}/work"]
    assert main([f"--kernelbench={tmp_path}", "--target=h200", *words]) == 2
    assert "is no checkout of KernelBench" in capsys.readouterr().err
    assert main([f"--kernelbench={checkout}", "--target=cpu", *words]) == 2
    assert "are C++" in capsys.readouterr().err
    assert main([f"--kernelbench={checkout}", "--target=h200", *words]) == 2
    assert "there is no `h200` in this computer" in capsys.readouterr().err
    assert not (tmp_path / "r.json").exists() and commit(checkout).startswith("eval.py ")


def test_why_a_solution_is_wrong_is_what_the_harness_says():
    said = types.SimpleNamespace(
        compiled=True,
        correctness=False,
        runtime=-1.0,
        ref_runtime=-1.0,
        runtime_stats={},
        ref_runtime_stats={},
        metadata={"hardware": "x", "correctness_issue": "off by 3"},
    )
    found = verdict(lambda **_: said, "", "")
    assert found["why"] == "off by 3" and not found["correctness"]
    assert not verdict(lambda **_: None, "", "")["compiled"]
    table = summary([{"level": 1, AS_IS: found}])
    assert table["all"][AS_IS] == {"judged": 1, "compiled": 1, "correct": 0, "speedup": None}


def test_packages_that_judge_nothing_need_not_be_there(monkeypatch):
    monkeypatch.setattr(judged, "find_spec", lambda name: None)
    for name in (*judged.UNUSED, "pydantic"):
        monkeypatch.setitem(sys.modules, name, None)
    assert replaced() == [*judged.UNUSED, "pydantic"]
    from pydantic import BaseModel

    class Said(BaseModel):
        right: bool = False
        why: dict = {}

    one, other = Said(right=True), Said()
    one.why["x"] = 1
    assert one.right and not other.right and other.why == {}
