"""The command evolves a user's task, and its winners must pass the task's tests."""

import json

import pytest

from testing.cli.command import evolve, evolve_here

TASK = """import torch

SHAPES = [({"n": 5}, 1.0), ({"n": 12}, 3.0)]
TOLERANCE = dict(rtol=1e-4, atol=1e-5)

def reference(x, y):
    return torch.softmax(torch.relu(x + y), dim=1)

def inputs(seed, n):
    print("noise")
    torch.manual_seed(seed)
    return torch.rand(4, n), torch.rand(n)

def test_rows_are_shares(run):
    torch.testing.assert_close(run(*inputs(3, 12)).sum(1), torch.ones(4))
"""
WRONG = """
def test_it_is_large(run):
    assert run(*inputs(3, 12)).max() > 7, "no"
"""


def run_of(folder, text, *words, command=evolve_here):
    (folder / "task.py").write_text(text)
    given = ("--target=null", "--task=task.py", "--no-store", "--evaluations=2")
    return command(folder, *given, *words)


def test_the_winners_of_a_task_are_held_to_it(tmp_path):
    done = run_of(tmp_path, TASK, "--json", command=evolve)
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)["problem"]["targets"]
    assert (found["steps"], found["shape"]) == (1, {"n": 12}) and found["best_us"]
    assert found["shapes"] == [{"n": 12}, {"n": 5}]
    names = ("inputs(0)", "inputs(1)", "test_rows_are_shares")
    names += ("inputs(0) at n=5", "inputs(1) at n=5")
    (run,) = json.loads(done.stdout)["runs"]
    assert [(row["sizes"], row["weight"]) for row in run["shapes"]] == [
        ({"S0": 12}, 3.0),
        ({"S0": 5}, 1.0),
    ]
    assert found["results"] == [{"name": name, "fault": None} for name in names]


SOLVER = """import torch

SHAPES = [({"n": 4}, 1.0), ({"n": 6}, 3.0)]

def reference(x, y):
    values, vectors = torch.linalg.eigh(torch.relu(x) @ torch.relu(x).t() + y)
    return torch.softmax(values, dim=0) + y, vectors.abs()

def inputs(seed, n):
    torch.manual_seed(seed)
    return torch.rand(n, n), torch.eye(n)

def test_shares(run):
    x, y = inputs(5, 6)
    torch.testing.assert_close((run(x, y)[0] - y).sum(1), torch.ones(6))
"""


@pytest.mark.slow
def test_a_task_whose_operators_are_partly_left_to_pytorch(tmp_path):
    done = run_of(tmp_path, SOLVER)
    assert done.returncode == 2 and "--allow-torch _linalg_eigh" in done.stderr
    done = run_of(tmp_path, SOLVER, "--allow-torch", "_linalg_eigh", "--json")
    assert done.returncode == 0, done.stderr + done.stdout
    (found,) = json.loads(done.stdout)["problem"]["targets"]
    assert found["left_to_torch"] == ["_linalg_eigh"] and found["shapes"] == [{"n": 6}, {"n": 4}]
    assert len(found["results"]) == 5 and not any(row["fault"] for row in found["results"])


def test_an_operator_with_equations_is_left_to_pytorch_as_asked(tmp_path):
    done = run_of(tmp_path, TASK, "--allow-torch=relu")
    assert done.returncode == 0, done.stderr + done.stdout
    assert "and relu by PyTorch, in no sum" in done.stdout
    assert "5 of 5 comparisons and tests hold" in done.stdout


def test_a_test_that_fails_is_told(tmp_path):
    done = run_of(tmp_path, TASK + WRONG)
    assert done.returncode == 1, done.stderr
    *_, line, fault = done.stdout.splitlines()
    assert "at n=12 | n=5: 5 of 6 comparisons and tests hold" in line
    assert fault == "  test_it_is_large: AssertionError: no" and "noise" not in done.stdout


def test_shapes_that_differ_in_more_than_sizes_are_told(tmp_path):
    other = "x = x * 2 if len(y) > 6 else x\n    return torch.softmax"
    text = TASK.replace("return torch.softmax", other)
    done = run_of(tmp_path, text)
    assert done.returncode == 0, done.stderr
    line = done.stdout.splitlines()[-1]
    assert "at n=12: 3 of 3 comparisons and tests hold; 1 other shape not run" in line


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        ("import torch\n", (), "defines no `reference`"),
        (TASK.replace("3.0", "0.0"), (), "SHAPES is"),
        (TASK, ("--reduced",), "--reduced and --task do not go together"),
        (TASK, ("--problem=task.py",), "--problem and --task do not go together"),
        (TASK, ("--kernel=softmax",), "--kernel and --task do not go together"),
    ],
)
def test_what_is_wrong_is_told(tmp_path, text, words, said):
    done = run_of(tmp_path, text, *words)
    assert done.returncode == 2 and said in done.stderr and done.stdout == "", done.stderr
