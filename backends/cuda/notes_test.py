"""The C++ of the notes is admitted and compiles, as the kernels of whoever follows them must."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from backends.cuda import nvrtc
from backends.cuda.admission import INCLUDE, require_admissible
from backends.cuda.build import HEADERS, OPTIONS

HERE = Path(__file__).parent
BLOCK = re.compile(r"^```cpp\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = [
    pytest.param(found, id=f"{file.stem}-{number}")
    for file in sorted((HERE / "notes").glob("*.md"))
    for number, found in enumerate(BLOCK.findall(file.read_text(encoding="utf-8")))
]
NEWER = ("warpgroup", "fence_shared", "TensorMap")  # what sm_80 does not have
KERNEL = """#include "kernel.h"
extern "C" __global__ void __launch_bounds__(128, 1) note_0(
    const float* __restrict__ x_ptr,
    const bf16* __restrict__ b_ptr,
    float* __restrict__ y_ptr,
    bf16* __restrict__ z_ptr,
    int M,
    int N,
    int K) {
  const int thread = threadIdx.x;
%s}
"""


def source(block):
    """A block as a source: it is one, or the statements of a kernel."""
    return block if INCLUDE in block else KERNEL % block


def test_there_are_blocks():
    assert len(BLOCKS) >= 15


@pytest.mark.parametrize("block", BLOCKS)
def test_a_block_is_admitted(block):
    require_admissible(source(block))


@pytest.mark.parametrize("block", BLOCKS)
def test_a_block_compiles(block):
    archs = ("90a",) if any(word in block for word in NEWER) else ("80", "90a")
    headers = {n: file.read_text(encoding="utf-8") for n, file in HEADERS.items()}
    for arch in archs:
        options = [f"--gpu-architecture=sm_{arch}", *OPTIONS]
        assert nvrtc.compiled(source(block), "note.cu", headers, options)
