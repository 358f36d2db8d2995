"""Admission: emitted sources are admitted, and whatever is more than kernels is refused."""

from __future__ import annotations

import pytest

from backends.backend import BackendError
from backends.cuda.admission import require_admissible
from backends.cuda.testing.samples import CASES, emitted

HEAD = '#include "kernel.h"\nextern "C" __global__ void __launch_bounds__(64, 1) k(\n'
KERNEL = (
    HEAD
    + "    const float* __restrict__ x_ptr,\n    float* __restrict__ y_ptr,\n    int M) {\n  %s\n}\n"
)


@pytest.mark.parametrize("name", CASES)
def test_what_is_emitted_is_admitted(name):
    require_admissible(emitted(name))


@pytest.mark.parametrize(
    "line",
    [
        "y_ptr[threadIdx.x] = fn::exp(x_ptr[threadIdx.x]) * 2.0f;",
        "if (M < 3 && x_ptr[0] > (1.0f)) y_ptr[0] = -1.0f;",
        "for (int n = 0; n < M; ++n) y_ptr[n] = x_ptr[n] > y_ptr[n] ? 1 : 0;",
        "float part[4]; load<4>(&part[0], x_ptr + 4 * threadIdx.x); __syncthreads();",
        "float* const t_tile = shared_at<float>(512); t_tile[0] = x_ptr[0];",
        "y_ptr[0] = bf16(x_ptr[0]) * f16(3.0f);",
    ],
)
def test_a_kernels_own_work_is_admitted(line):
    require_admissible(KERNEL % line)


@pytest.mark.parametrize(
    "line",
    [
        'asm volatile("trap;");',
        'asm("mov.u32 %0, %clock;");',
        "long t = clock64();",
        "y_ptr[0] = *reinterpret_cast<const float*>(M);",
        "y_ptr[0] = *(float*)(x_ptr + M);",
        "y_ptr[0] = *(float *)0x7f0000000000;",
        "float* p = y_ptr; p[0] = 1;",
        "static int seen = 0;",
        "__shared__ float s[4];",
        "__trap();",
        "__nanosleep(1000000);",
        "printf(x_ptr);",
        "k<<<1, 1>>>(x_ptr, y_ptr, M);",
        "cudaMalloc(0, 4);",
        "auto p = malloc(4);",
        "struct A { int a; };",
        "using T = float;",
        "y_ptr[0] = ptx::max_nan(1, 2);",
        "ptx::wait_copies<0>();",
        "this->x = 1;",
        "goto end;",
        "%:define A",
        "y_ptr[0] = '1';",
        'const char* s = "text";',
        "y_ptr[0] = sizeof(float);",
        "atomicAdd(y_ptr, 1.0f);",
        "y_ptr[0] = expf(1.0f);",
        "namespace a {}",
        "y_ptr[0] = \\\n 1;",
    ],
)
def test_what_reaches_beyond_a_kernel_is_refused(line):
    with pytest.raises(BackendError, match="is not for a kernel") as seen:
        require_admissible(KERNEL % line)
    assert seen.value.stage == "build"


@pytest.mark.parametrize(
    "source",
    [
        "int main() { return 0; }\n",
        "__device__ int seen;\n" + KERNEL % "",
        KERNEL % "" + "int host(int a) { return a; }\n",
        KERNEL % "" + "float y = 1;\n",
        "#include <cuda_runtime.h>\n" + KERNEL % "",
        '#include "ptx.h"\n' + KERNEL % "",
        "#define fn other\n" + KERNEL % "",
        "#define EVEN_M asm\n" + KERNEL % "",
        "#pragma once\n" + KERNEL % "",
        (KERNEL % "").replace("const float* __restrict__ x_ptr", "const float** x_ptr"),
        (KERNEL % "").replace("int M", "unsigned long long M"),
        (KERNEL % "").replace('extern "C" ', ""),
        (KERNEL % "").replace("__global__", "__host__"),
        "/* " + KERNEL % "" + "int x;",
        KERNEL % "{",
    ],
)
def test_what_is_no_kernel_is_refused(source):
    with pytest.raises(BackendError, match="is not for a kernel"):
        require_admissible(source)
