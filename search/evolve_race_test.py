"""The command races all backends of a target, or those that its user names."""

import json
import tomllib

import pytest

from testing.cli.command import evolve_here
from testing.cli.place import Place

# A target with two backends and no device here: times are modelled and reproducible.
TARGET = "h200"
ROWS = ("--kernel=rows.kir", "--policy=evolutionary", "--seed=3")
RACED = ["triton", "cuda", "cutedsl"]


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path, TARGET)


def test_a_race_has_one_budget_one_winner_and_a_row_for_each_backend(place):
    words = (*ROWS, "--evaluations=12", "--out=out", "--report=report.html", "--workers=2")
    (found,) = place.evolve(*words)["runs"]
    rows = {row["backend"]: row for row in found["backends"]}
    assert list(rows) == RACED
    assert sum(row["evaluations"] for row in rows.values()) == found["evaluations"] == 12
    assert all(row["correct"] >= 2 and row["evaluations"] >= 3 for row in rows.values())
    assert found["best_us"] == min(row["best_us"] for row in rows.values())
    won = rows[found["backend"]]
    assert (won["best_us"], won["schedule"]) == (found["best_us"], found["schedule"])
    folder = place.work / "out" / "rows" / TARGET
    record = tomllib.loads((folder / "record.toml").read_text())
    assert record["backend"] == found["backend"]
    assert (folder / record["source"]).read_text() == found["source"]
    page = (place.work / "report.html").read_text()
    assert "By backend" in page and f"{found['backend']}, the winner" in page
    # The store gives the same, with the table for a person.
    code, out, err = place.run_here(f"--show={found['run']}")
    assert code == 0, err
    assert f"rows on {TARGET}, by backend, won by {found['backend']}:" in out


@pytest.mark.parametrize(
    "names", [["cuda"], pytest.param(["cuda", "triton"], marks=pytest.mark.slow)]
)
def test_a_user_names_the_backends_that_race(place, names):
    options = [f"--backend={name}" for name in names]
    (found,) = place.evolve(*ROWS, "--evaluations=4", *options, "--no-store")["runs"]
    assert [row["backend"] for row in found["backends"]] == names
    assert found["backend"] in names


def test_backends_without_a_dtype_of_the_kernel_are_left_out_and_named_once(place):
    (place.work / "narrow.kir").write_text(
        'def narrow(x: f8e8m0[M]) -> f32[M]:\n    """Double."""\n    y[m] = f32(x[m]) * 2.0\n    return y\n\n'
        "tune(M=64)\ncheck(M=5)\n"
    )
    words = ("--target=h200", "--kernel=narrow.kir", "--evaluations=2", "--no-store", "--json")
    code, out, err = place.run_here(*words, "--workers=1")
    assert code == 0, err
    assert json.loads(out)["runs"][0]["backend"] == "cuda"
    for name in ("triton", "cutedsl"):
        said = f"h200: without `{name}`: its kernels hold no f8e8m0, which `narrow` has"
        assert err.count(said) == 1


@pytest.mark.slow
def test_a_model_new_takes_the_backends_that_python_can_import(tmp_path):
    (tmp_path / "model.py").write_text(
        "import torch\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n"
        "        return torch.relu(x) * 2.0\n\n"
        "def get_inputs():\n    return [torch.rand(6, 10)]\n\n"
        "def get_init_inputs():\n    return []\n"
    )
    words = (f"--target={TARGET}", "--problem=model.py", "--model-new=new.py", "--evaluations=2")
    done = evolve_here(tmp_path, *words, "--no-store")
    assert done.returncode == 0, done.stderr
    why = "its sources are CUDA C++, which a module of Python cannot call"
    assert done.stderr.count(f"{TARGET}: without `cuda`: {why}") == 1
    assert "class ModelNew" in (tmp_path / "new.py").read_text()
    done = evolve_here(tmp_path, *words, "--no-store", "--backend=cuda", "--overwrite")
    assert done.returncode == 2 and "are CUDA C++" in done.stderr
