"""The searches of the device suite: what `evolve` is documented to do on a GPU machine."""

from __future__ import annotations

import shutil
from pathlib import Path

from search.core.evaluation import Failure
from search.store.store import Store
from tests.device.commands import ROOT, Launched, Ran

EVALUATIONS = 10
STORE = "runs.db"  # in the folder of each search
EVOLVE = ("-m", "search.evolve", "--json", "--workers=2", "--seed=1", "--no-promote")
# Of each level some that a float64 reference on the CPU can follow. Those with most kernels come
# first, as searches run side by side.
PROBLEMS = {
    3: ("4_LeNet5", "3_DeepNarrowMLP"),
    2: (
        "99_Matmul_GELU_Softmax",
        "9_Matmul_Subtract_Multiply_ReLU",
        "12_Gemm_Multiply_LeakyReLU",
        "76_Gemm_Add_ReLU",
    ),
    1: (
        "50_conv_standard_2D__square_input__square_kernel",
        "1_Square_matrix_multiplication_",
        "10_3D_tensor_matrix_multiplication",
        "12_Matmul_with_diagonal_matrices_",
        "14_Matmul_for_upper_triangular_matrices",
    ),
}
SEARCHES = {
    "kernel": ("--kernel=attention",),
    "kernel file": ("--kernel=my_kernel.kir", "--shape=M=2048,K=512"),
    "several shapes": (
        "--kernel=conv1d",
        "--shape=B=4@3",
        "--shape=B=64",
        "--dispatch=2",
        "--held-out=1",
    ),
    "task": ("--task=task.py",),
    "left to PyTorch": ("--problem=left.py", "--allow-torch=tanh"),
    "page and timeline": ("--kernel=softmax", "--report=report.html", "--trace=trace.json"),
}
TASK = """import torch

SHAPES = [({"n": 512}, 1.0), ({"n": 4096}, 3.0)]

def reference(x):
    return torch.softmax(x, dim=1)

def inputs(seed, n):
    torch.manual_seed(seed)
    return [torch.randn(128, n)]

def test_rows_are_shares(run):
    torch.testing.assert_close(run(*inputs(3, 4096)).sum(1), torch.ones(128))
"""
LEFT = """import torch

class Model(torch.nn.Module):
    def forward(self, x, y):
        return torch.softmax(torch.tanh(x @ y), dim=1) * x

def get_inputs():
    return [torch.randn(256, 256), torch.randn(256, 256)]

def get_init_inputs():
    return []
"""


def problem_names() -> list[str]:
    """All problems, as `level3/4_LeNet5`."""
    return [f"level{level}/{name}" for level, names in PROBLEMS.items() for name in names]


def start(all_of_them: Launched, home: Path, target: str, problems: Path) -> None:
    """Starts every search. problems: KernelBench's folder of level1, level2, level3."""
    for name in problem_names():
        folder = home / name.replace("/", "_")
        words = (f"--problem={problems / name}.py", "--model-new=new.py")
        all_of_them.start(name, folder, *_evolve(target), *words)
    for name, words in SEARCHES.items():
        folder = home / name.replace(" ", "_")
        folder.mkdir(parents=True)
        (folder / "task.py").write_text(TASK)
        (folder / "left.py").write_text(LEFT)
        shutil.copy(ROOT / "ir" / "library" / "softmax.kir", folder / "my_kernel.kir")
        all_of_them.start(name, folder, *_evolve(target), *words)


def _evolve(target: str) -> tuple[str, ...]:
    return (*EVOLVE, f"--target={target}", f"--evaluations={EVALUATIONS}", f"--store={STORE}")


def failures(ran: Ran) -> list[str]:
    """Why candidates of a search failed, in words, the first schedule's first."""
    store = Store(str(ran.folder / STORE))
    runs = [store.load(run) for run in store.runs()]
    store.close()
    return [
        f"{run.run} #{number}: {failed.stage}, {failed.kind}: {failed.reason[:400]}"
        for run in runs
        for number, failed in enumerate(run.outcomes.values())
        if isinstance(failed, Failure)
    ]
