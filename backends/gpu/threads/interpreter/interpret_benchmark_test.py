"""How long runs take: `bazel test --config=benchmark //backends/...`, in CPU time."""

import time

import pytest

from backends.gpu.threads.interpreter.cases import TABLE, arrays
from backends.gpu.threads.interpreter.interpret import interpret
from backends.gpu.threads.testing import samples

RUNS = {
    "matmul": {"M": 256, "N": 256, "K": 256},
    "row_sum": {"M": 256, "K": 512},
    "transpose": {"M": 512, "N": 512},
}


@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize("kernel", RUNS)
def test_running(benchmark, kernel):
    program, sizes = getattr(samples, kernel)(), RUNS[kernel]
    given = arrays(program, sizes)
    assert benchmark(interpret, program, sizes, given, TABLE, 1 << 16).rows
