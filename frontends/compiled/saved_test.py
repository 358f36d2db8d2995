"""A saved module gives the same call in another process, and nothing where it was touched."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from frontends.compiled.module import compile_module
from frontends.compiled.saved import load, save
from ir.errors import KernelError
from testing.slow import slow

ROOT = Path(__file__).parent.parent.parent
TARGETS = ("h200", "npu")
FRESH = """
import sys, torch
from pathlib import Path
from frontends.compiled.saved import load
run = load(Path(sys.argv[1]))
x = torch.load(sys.argv[2])
torch.save([run(x), run(x), run.state["1.running_mean"]], sys.argv[3])
used = [m for m in sys.modules if m.startswith(("frontends.aten", "frontends.pytorch.trace"))]
assert not used, used
"""


def made(target, folder):
    torch.manual_seed(1)
    module = nn.Sequential(nn.Linear(12, 8), nn.BatchNorm1d(8), nn.Dropout(0.3))
    x = torch.randn(6, 12)
    return module, x, compile_module(module, (x,), target=target, folder=folder)


@pytest.fixture(scope="module", params=[slow(TARGETS[0]), TARGETS[1]])
def saved(request, tmp_path_factory):
    module, x, run = made(request.param, tmp_path_factory.mktemp("built"))
    folder = tmp_path_factory.mktemp("records") / "record"
    save(run, folder)
    return folder, module, x, run


def test_another_process_computes_the_same(saved, tmp_path):
    folder, module, x, run = saved
    given, answer = tmp_path / "x.pt", tmp_path / "y.pt"
    torch.save(x, given)
    subprocess.run(
        [sys.executable, "-c", FRESH, str(folder), str(given), str(answer)], check=True, cwd=ROOT
    )
    *found, mean = torch.load(answer)
    run.seed = 0
    expected = [run(x), run(x)]
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
    assert torch.equal(mean, module[1].running_mean)


def test_parameters_can_be_the_callers(saved):
    folder, module, x, run = saved
    state = {n: t.clone() for n, t in module.state_dict().items()}
    state["0.weight"].zero_()
    state["0.bias"].zero_()
    assert not load(folder, state)(x).any() and run(x).any()


@pytest.fixture
def copied(saved, tmp_path):
    run = saved[3]
    save(run, tmp_path / "record")
    return tmp_path / "record"


def edited(folder, **fields):
    file = folder / "manifest.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | fields))


@pytest.mark.parametrize(
    ("touch", "words"),
    [
        (lambda f: (f / "call.json").write_text("{}"), "not what was saved"),
        (lambda f: (f / "network.json").unlink(), "is missing"),
        (lambda f: (f / "more.txt").write_text("x"), "is not part of what was saved"),
        (lambda f: (f / "manifest.json").unlink(), "cannot be read"),
        (lambda f: (f / "manifest.json").write_text("no"), "cannot be read"),
        (lambda f: edited(f, format=99), "format is 99"),
        (lambda f: edited(f, more=1), "other fields"),
        (lambda f: edited(f, facts={}), "`target` is None"),
        (lambda f: edited(f, facts={"target": "none", "backend": "x"}), "no target `none`"),
    ],
)
def test_a_record_that_was_touched_is_refused(copied, touch, words):
    touch(copied)
    with pytest.raises(KernelError, match=words):
        load(copied)


def solved(x):
    order = torch.linalg.eigh(torch.relu(x))[0].argsort()
    return torch.full_like(x, 2.0)[order] + x, torch.cumsum(x, 1, dtype=torch.float64)


def test_a_record_names_what_is_left_to_pytorch_and_calls_it_again(tmp_path):
    """With arguments of all sorts: tensors, numbers, dtypes and devices."""
    names, x = ["_linalg_eigh", "full_like", "cumsum"], torch.randn(4, 4)
    run = compile_module(solved, (x,), target="npu", folder=tmp_path / "b", allow_torch=names)
    for folder, one in ((tmp_path / "r", run), (tmp_path / "again", None)):
        save(one or load(tmp_path / "r"), folder)
        loaded = load(folder)
        facts = json.loads((folder / "manifest.json").read_text())["facts"]
        assert set(facts["left_to_torch"]) == set(loaded.left_to_torch) == set(names)
        torch.testing.assert_close(loaded(x), solved(x))


def test_a_folder_is_replaced_only_when_told_to(saved, tmp_path):
    run = saved[3]
    (tmp_path / "file").write_text("mine")
    with pytest.raises(KernelError, match="there already"):
        save(run, tmp_path, overwrite=True)
    save(run, tmp_path / "record")
    with pytest.raises(KernelError, match="there already"):
        save(run, tmp_path / "record")
    save(run, tmp_path / "record", overwrite=True)
    load(tmp_path / "record")


def test_a_record_without_tensors_needs_them(saved, tmp_path):
    save(saved[3], tmp_path / "record", state=False)
    with pytest.raises(KernelError, match="0.weight"):
        load(tmp_path / "record")
    load(tmp_path / "record", saved[1].state_dict())


def test_a_loaded_module_can_be_saved_again(saved, tmp_path):
    folder, _, x, run = saved
    save(load(folder), tmp_path / "again")
    same = {p.relative_to(folder) for p in folder.rglob("*.kir")}
    assert same == {p.relative_to(tmp_path / "again") for p in (tmp_path / "again").rglob("*.kir")}
    load(tmp_path / "again")(x)
