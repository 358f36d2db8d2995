"""The C++ in the notes is admitted and compiles, as kernels that follow them must."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from backends.hip import clang
from backends.hip.admission import ADMISSION

HERE = Path(__file__).parent
BLOCK = re.compile(r"^```cpp\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = [
    pytest.param(found, id=f"{file.stem}-{number}")
    for file in sorted((HERE / "notes").glob("*.md"))
    for number, found in enumerate(BLOCK.findall(file.read_text(encoding="utf-8")))
]
INCLUDES = "\n".join(ADMISSION.includes)
KERNEL = (
    INCLUDES
    + """
extern "C" __global__ void __launch_bounds__(256, 1) note_0(
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
)


def source(block):
    """A block as a source: a whole source, or the statements of a kernel."""
    return block if INCLUDES in block else KERNEL % block


def test_there_are_blocks():
    assert len(BLOCKS) >= 8


@pytest.mark.parametrize("block", BLOCKS)
def test_a_block_is_admitted(block):
    ADMISSION.require(source(block))


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_a_block_compiles(block, arch, tmp_path):
    file = tmp_path / "kernel.hip"
    file.write_text(source(block), encoding="utf-8")
    assert "s_endpgm" in clang.assembly(file, arch, (), tmp_path / "kernel.s")
