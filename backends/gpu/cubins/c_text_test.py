"""The C that launches a cubin, compiled and run beside a driver that tells what it is asked."""

import subprocess
from pathlib import Path

import pytest
import triton

from backends.gpu.cubins.c_text import c_files
from backends.gpu.cubins.driver import encoding
from backends.gpu.source.launches import Call, Map
from backends.parameters import Parameter

INCLUDE = Path(triton.__file__).parent / "backends" / "nvidia" / "include"
IMAGE = bytes(range(256)) * 3
TENSORS = [
    (Parameter("x", "bf16", (), "input"), (8, 64)),
    (Parameter("between", "f32", (), "workspace"), (8,)),
    (Parameter("y", "f32", (), "output"), (8, 64)),
]
BOX = Map(0, "bf16", (8, 64), (4, 64), (2, 1), 128)
CALLS = (
    Call("one_0", 3, 128, 1024, (0, 1), (8, 64)),
    Call("two_1", 6, 256, 200_000, (0, 1, 2), (64, 1), (BOX, None), 2),
    Call("two_1", 0, 256, 200_000, (0, 1, 2), (64, 2), (BOX, None), 2),
    Call("two_1", 6, 256, 200_000, (0, 1, 2), (64, 3), (None, BOX), 2),
)
# Prints each call of the driver. KINDS: of each launch, what its arguments are.
DRIVER = r"""
#include <stdio.h>
#include <string.h>
#include "one.h"
static const char *kinds[] = {KINDS};
static int launched;
CUresult cuModuleLoadData(CUmodule *m, const void *image) {
  unsigned sum = 0;
  for (int n = 0; n < BYTES; ++n) sum += (n % 7 + 1) * ((const unsigned char *)image)[n];
  printf("load %u\n", sum);
  *m = (CUmodule)1;
  return CUDA_SUCCESS;
}
CUresult cuModuleUnload(CUmodule m) { printf("unload %d\n", m == (CUmodule)1); return CUDA_SUCCESS; }
CUresult cuModuleGetFunction(CUfunction *f, CUmodule m, const char *name) {
  printf("function %s\n", name);
  *f = (CUfunction)(size_t)name[strlen(name) - 1];
  return CUDA_SUCCESS;
}
CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute a, int value) {
  printf("attribute %c %d %d\n", (int)(size_t)f, a, value);
  return CUDA_SUCCESS;
}
CUresult cuTensorMapEncodeTiled(CUtensorMap *to, CUtensorMapDataType type, cuuint32_t dims, void *at,
    const cuuint64_t *sizes, const cuuint64_t *strides, const cuuint32_t *box, const cuuint32_t *steps,
    CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
    CUtensorMapFloatOOBfill fill) {
  if ((size_t)to % 64) return CUDA_ERROR_INVALID_VALUE;
  printf("map %d %u %zu [%lu, %lu] [%lu] [%u, %u] [%u, %u] %d %d %d %d\n", type, dims, (size_t)at,
         (long)sizes[0], (long)sizes[1], (long)strides[0], box[0], box[1], steps[0], steps[1],
         interleave, swizzle, promotion, fill);
  memset(to, 7, sizeof *to);
  return CUDA_SUCCESS;
}
CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction f, void **arguments, void **extra) {
  printf("launch %c %u %u %u %u %u %u %u cluster %u stream %zu:", (int)(size_t)f, c->gridDimX, c->gridDimY,
         c->gridDimZ, c->blockDimX, c->blockDimY, c->blockDimZ, c->sharedMemBytes,
         c->numAttrs ? c->attrs[0].value.clusterDim.x : 1, (size_t)c->hStream);
  for (const char *k = kinds[launched++]; *k; ++k, ++arguments)
    if (*k == 'p') printf(" p%llu", *(CUdeviceptr *)*arguments);
    else if (*k == 'm') printf(" m%d", ((unsigned char *)*arguments)[127]);
    else printf(" %d", *(int *)*arguments);
  printf("\n");
  return CUDA_SUCCESS;
}
int main(void) {
  one_kernel kernel;
  return one_load(&kernel) || one_run(&kernel, 1000, 2000, 3000, (CUstream)5) || one_unload(&kernel);
}
"""


def told(folder: Path, calls=CALLS, change=lambda text: text) -> list[str]:
    """What the driver was asked."""
    files = c_files("one", "one at M = 8", TENSORS, calls, IMAGE)
    for name, text in files.items():
        (folder / name).write_text(change(text))
    kinds = [
        "p" * len(c.tensors) + "m" * len(c.maps) + "i" * len(c.arguments) for c in calls if c.grid
    ]
    text = DRIVER.replace("KINDS", ", ".join(f'"{k}"' for k in kinds))
    (folder / "driver.c").write_text(text.replace("BYTES", str(len(IMAGE))))
    command = ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"]
    command += [f"-isystem{INCLUDE}", "one.c", "driver.c", "-o", "one"]
    made = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert not made.returncode, made.stderr
    return subprocess.run(
        [folder / "one"], capture_output=True, text=True, check=True
    ).stdout.split("\n")


def test_the_driver_is_asked_for_what_the_calls_say(tmp_path):
    e = encoding(BOX)
    box = (
        f"map {e.type} 2 1000 {list(e.sizes)} {list(e.strides)} {list(e.box)} {list(e.steps)} "
        f"0 {e.swizzle} {e.promotion} 0"
    )
    assert told(tmp_path) == [
        f"load {sum((n % 7 + 1) * byte for n, byte in enumerate(IMAGE))}",
        "function one_0",
        "function two_1",
        *["attribute 1 8 200000"] * 3,
        "launch 0 3 1 1 128 1 1 1024 cluster 1 stream 5: p1000 p2000 8 64",
        box,
        "launch 1 6 1 1 256 1 1 200000 cluster 2 stream 5: p1000 p2000 p3000 m7 m0 64 1",
        box,
        "launch 1 6 1 1 256 1 1 200000 cluster 2 stream 5: p1000 p2000 p3000 m0 m7 64 3",
        "unload 1",
        "",
    ]


def test_a_kernel_may_have_neither_maps_nor_numbers(tmp_path):
    found = told(tmp_path, (Call("one_0", 3, 128, 0, (0, 2), ()),))
    assert "launch 0 3 1 1 128 1 1 0 cluster 1 stream 5: p1000 p3000" in found


def test_the_header_names_tensors_with_their_shapes():
    header = c_files("one", "one */ at M = 8", TENSORS, CALLS, IMAGE)["one.h"]
    assert "x_ptr: bf16[8, 64], input" in header and "between_ptr: f32[8], workspace" in header
    assert "CUdeviceptr x_ptr, CUdeviceptr between_ptr, CUdeviceptr y_ptr, CUstream" in header
    assert "one * / at" in header


@pytest.mark.parametrize("dtype", ["f32", "bf16", "i64"])
def test_an_encoding_has_the_contiguous_dimension_first(dtype):
    size = {"f32": 4, "bf16": 2, "i64": 8}[dtype]
    found = encoding(Map(0, dtype, (2, 3, 5), (1, 2, 4), (1, 1, 2), 64))
    assert found.sizes == (5, 3, 2) and found.strides == (5 * size, 15 * size)
    assert found.box == (8, 2, 1) and found.steps == (2, 1, 1)
