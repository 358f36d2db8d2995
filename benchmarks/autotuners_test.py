"""Tests a race against Helion's autotuner without either: which forms are called, and what a row
contains."""

import json
import subprocess

import pytest
import torch

from benchmarks import autotuners as module
from benchmarks.autotuners import (
    SIZES,
    compared,
    helion_forms,
    helion_settings,
    line,
    main,
    most_forms,
    workload,
)
from benchmarks.rehearsal import SlowDevice

EXAMPLES = {
    "softmax": """
import torch
def softmax(x):
    return torch.softmax(x, 1)
softmax_two_pass = softmax
""",
    "layer_norm": """
import torch
def layer_norm_fwd(x, shape, weight, bias):
    return torch.nn.functional.layer_norm(x, shape, weight, bias), None, None
""",
    "matmul": """
def matmul(x, y, epilogue):
    whole = slice(None)
    return epilogue(x.float() @ y.float(), (whole, whole))
""",
    "attention": """
import torch
def attention_output(q, k, v):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v)
""",
}


@pytest.fixture
def helion(tmp_path):
    folder = tmp_path / "examples"
    folder.mkdir()
    for name, text in EXAMPLES.items():
        (folder / f"{name}.py").write_text(text)
    return tmp_path


@pytest.mark.parametrize("kernel", SIZES)
def test_each_form_takes_our_inputs_and_gives_our_output(helion, kernel, monkeypatch):
    small = {name: min(size, 48) for name, size in SIZES[kernel].items()}
    monkeypatch.setitem(SIZES, kernel, small)
    draw = module.draw
    monkeypatch.setattr(module, "draw", lambda spec, sizes, _, seed: draw(spec, sizes, "cpu", seed))
    forms = helion_forms(kernel, helion)
    assert len(forms) == most_forms(kernel)
    for form in forms.values():
        assert not module._fault(kernel, workload(kernel), form)
        assert module._fault(kernel, workload(kernel), lambda *t, f=form: f(*t) * 1.5)


def row(ours=None, **theirs):
    made = {"kernel": "softmax", "shape": SIZES["softmax"], "ours": ours or {}, "helion": theirs}
    return made | compared(made)


def test_the_fastest_correct_form_counts():
    right = {"correct": True, "us": 10.0}
    made = row(right, a={"correct": True, "us": 12.0}, b={"correct": False, "us": 5.0})
    assert (made["us"], made["helion_us"], made["form"], made["speedup"]) == (10.0, 12.0, "a", 1.2)
    assert "1.20 times as fast" in line(made)
    failed = row(right, a={"reason": "it does not compile"})
    assert "does not compile" in failed["reason"] and "FAILED" in line(failed)
    assert "off" in row({"correct": False, "reason": "off"}, a=right)["reason"]


def test_wrong_words_are_refused(helion, tmp_path, capsys):
    words = ["--target=h200", f"--out={tmp_path}/r.json"]
    assert main([*words, f"--helion={helion}", "--kernels=map_id"]) == 2
    assert "softmax" in capsys.readouterr().err
    assert main([*words, f"--helion={tmp_path}/none"]) == 2
    assert "checkout" in capsys.readouterr().err
    if not torch.cuda.is_available():
        assert main([*words, f"--helion={helion}"]) == 2
        assert "h200" in capsys.readouterr().err


class Found:
    """Stands for the result of a search: PyTorch's softmax."""

    source = "a kernel"
    phases = {"search": 1.5}

    def save(self, path):
        path.write_text(self.source)


def test_helion_times_something_before_its_budget_is_used_up():
    told = helion_settings(60.0)
    assert told["HELION_AUTOTUNE_BUDGET_SECONDS"] == "60"
    # Helion reads an integer. The limit is a part of the budget, because nothing is timed before
    # all is built.
    assert told["HELION_AUTOTUNE_COMPILE_TIMEOUT"] == "12"
    assert helion_settings(8.0)["HELION_AUTOTUNE_COMPILE_TIMEOUT"] == "4"


def test_one_part_searches_and_the_next_races(helion, tmp_path, monkeypatch):
    monkeypatch.setitem(SIZES, "softmax", {"M": 8, "K": 48})
    draw = module.draw
    monkeypatch.setattr(module, "draw", lambda spec, sizes, _, seed: draw(spec, sizes, "cpu", seed))
    monkeypatch.setattr(module, "version", lambda _: "1.0")
    monkeypatch.setattr(module, "CudaDevice", SlowDevice)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(module.machine_room, "require", lambda *_: {})
    monkeypatch.setattr(module.machine_room, "facts", lambda: {"machine": "none"})
    monkeypatch.setattr(module.speciate, "evolve", lambda *_, **__: Found())
    monkeypatch.setattr(module.speciate, "load", lambda _: lambda x: torch.softmax(x, 1))
    parts = []

    def run(command, env, **_):
        parts.append(command[-1])
        for name, value in env.items():
            if name.startswith("HELION_"):
                monkeypatch.setenv(name, value)
        return subprocess.CompletedProcess(command, main(command[3:]))

    monkeypatch.setattr(module.subprocess, "run", run)
    out = tmp_path / "r.json"
    assert main(["--target=h200", f"--helion={helion}", "--kernels=softmax", f"--out={out}"]) == 0
    assert parts == ["--part=search", "--part=race"]
    (made,) = json.loads(out.read_text())["rows"]
    assert made["ours"]["correct"] and made["form"] in ("softmax", "softmax_two_pass")
    told = {n: v for n, v in made["helion_settings"].items() if n in helion_settings(60.0)}
    assert told == helion_settings(60.0)
    assert made["ours"]["phases_s"] == {"search": 1.5}
    assert made["ours"]["digest"] and set(made["helion"]) == {"softmax", "softmax_two_pass"}
