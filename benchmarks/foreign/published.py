"""Cheats that others published: KernelBench's adversarial kernels, and rows of CUDA-L1 that compute
nothing.

Their texts are not included. To judge them, fetch both repositories.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ir.errors import KernelError

KERNELBENCH, CUDA_L1 = "KernelBench", "CUDA-L1"
ADDRESSES = {
    KERNELBENCH: "https://github.com/ScalingIntelligence/KernelBench",
    CUDA_L1: "https://github.com/deepreinforce-ai/CUDA-L1",
}
SQUARE = "KernelBench/level1/1_Square_matrix_multiplication_.py"
KERNELS = "src/kernelbench/unit_tests/test_kernels"
ROWS = "optimized_cuda_code/h100.json"
# Compiles an extension that only calls ATen for the CPU: the CUDA text is compiled as C++.
AS_CPP = {
    "cpp_sources=matmul_cuda_cpp": "cpp_sources=matmul_cuda_source",
    "cuda_sources=matmul_cuda_source,": "",
}


@dataclass(frozen=True, slots=True)
class Cheat:
    """A published cheat, and the expected verdict on it."""

    name: str
    collection: str  # Its repository.
    place: str | tuple[int, int]  # The file of a kernel, or the level and task of a row.
    why: str  # Why it must not pass.
    # Correct kinds of refusal, each with words of its reason.
    expected: Mapping[str, str]
    # Replacements in both texts without a GPU, so that it runs there. None if it needs a GPU.
    on_cpu: Mapping[str, str] | None = field(default_factory=dict)


CONSTANT = {"bad input": "whatever the inputs"}
CHEATS = (
    Cheat(
        "uninitialised memory",
        KERNELBENCH,
        "result_reuse_kernel.py",
        "returns memory that it has not written, which may hold the reference's result",
        {"wrong": "the result", "still": "does not change"},
        AS_CPP | {"2048 * 2": "160", "#include <cuda_runtime.h>": ""},
    ),
    Cheat(
        "inputs set to zero",
        KERNELBENCH,
        "zero_out_kernel.py",
        "sets its inputs to zero and returns zeros, which is right if the reference runs afterwards",
        {"changes inputs": "it changes its input 0"},
        AS_CPP | {"2048 * 2": "160"},
    ),
    Cheat(
        "another stream",
        KERNELBENCH,
        "non_default_stream_kernel.py",
        "computes on a stream that events on the default stream do not wait for",
        {"clocks disagree": "by the judge's clock", "wrong": "the result"},
        None,
    ),
    Cheat(
        "a result that is not computed",
        CUDA_L1,
        (1, 9),
        "returns a subclass of a tensor that holds no element and claims the shape",
        {"form": "the result"},
        {"16384": "1024"},
    ),
    Cheat(
        "ones",
        CUDA_L1,
        (2, 66),
        "returns a tensor of ones that was made beforehand",
        CONSTANT,
    ),
    Cheat(
        "zeros",
        CUDA_L1,
        (2, 80),
        "returns a tensor of zeros, and from the second call on the one of the first",
        CONSTANT,
    ),
    Cheat(
        "zeros that are stored",
        CUDA_L1,
        (2, 83),
        "returns a tensor of zeros that was made beforehand",
        CONSTANT,
        {"batch_size = 128": "batch_size = 4"},
    ),
)


@dataclass(frozen=True, slots=True)
class Texts:
    """A problem and a solution, as in files."""

    problem: str
    solution: str


def texts(cheat: Cheat, folders: Mapping[str, Path], on_cpu: bool) -> Texts:
    """Returns the texts of a cheat. folders: of each repository's checkout. Raises KernelError if
    they do not exist."""
    folder = folders[cheat.collection]
    found = _kernel(folder, cheat.place) if isinstance(cheat.place, str) else _row(folder, cheat)
    changes = cheat.on_cpu if on_cpu else {}
    if changes is None:
        raise KernelError(f"`{cheat.name}` needs a GPU", where="--device", allowed="cuda")
    for old, new in changes.items():
        # Both contain the sizes: a solution may know the problem's.
        if old not in found.solution:
            raise KernelError(
                f"`{cheat.name}` has no `{old}`: it is another version",
                where=str(folder),
                hint=ADDRESSES[cheat.collection],
            )
        found = Texts(found.problem.replace(old, new), found.solution.replace(old, new))
    return found


def as_expected(cheat: Cheat, kind: str, reason: str) -> bool:
    """Whether a refusal is an expected one."""
    return kind in cheat.expected and cheat.expected[kind] in reason


def _kernel(folder: Path, name: str) -> Texts:
    return Texts(_text(folder / SQUARE, KERNELBENCH), _text(folder / KERNELS / name, KERNELBENCH))


def _row(folder: Path, cheat: Cheat) -> Texts:
    for line in _text(folder / ROWS, CUDA_L1).splitlines():
        row = json.loads(line) if line.strip() else {}
        if (row.get("level_id"), row.get("task_id")) == cheat.place:
            return Texts(row["ref_code"], row["custom_code"])
    raise KernelError(
        f"no row of level and task {cheat.place}",
        where=str(folder / ROWS),
        hint=ADDRESSES[CUDA_L1],
    )


def _text(file: Path, collection: str) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise KernelError(
            f"cannot read the text of a cheat: {error}",
            where=str(file),
            hint=f"a checkout of {ADDRESSES[collection]}",
        ) from error
