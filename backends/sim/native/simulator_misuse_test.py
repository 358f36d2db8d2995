"""Programs that access foreign memory end in an error, and do not change memory of the
simulator."""

import numpy as np
import pytest

from backends.sim.native.kernel_fixture import run
from backends.sim.native.load import load

_A = 'auto a = pe.buffer("a", Dtype::f32, {{M, 4}}, 1);\nco_await pe.fill(a.tile(), 0, {{M, 4}});\n'
_FAR = "9223372036854775807LL"

# name: (program, the message)
_MISUSES = {
    "size": (
        f"{_A}co_await pe.fill(a.tile(), args.size(100000), {{{{M, 4}}}});",
        "a size that the launch does not have",
    ),
    "size_before": (
        f"{_A}co_await pe.fill(a.tile(), args.size(-1), {{{{M, 4}}}});",
        "a size that the launch does not have",
    ),
    "tensor": (
        f"{_A}co_await pe.load(a.tile(), args.tensor(900), {{{{0, M, 4}}}});",
        "tensor 900 is used",
    ),
    "box": (f"{_A}co_await pe.fill(a.tile(), 0, {{{{M, 1LL << 32}}}});", "the box is too large"),
    "box_of_many": (
        f"{_A}co_await pe.fill(a.tile(), 0, {{{{M, 4}}, {{N, 1LL << 28}}, {{K, 1LL << 28}}}});",
        "the box is too large",
    ),
    "buffer": (
        'auto b = pe.buffer("b", Dtype::f32, {{M, 1LL << 32}, {N, 1LL << 32}}, 1);',
        "more elements than local memory has bytes",
    ),
    "stages": (
        'auto b = pe.buffer("b", Dtype::f32, {{M, 4}}, 1LL << 40);',
        "has 1099511627776 stages",
    ),
    "dtype": ('auto b = pe.buffer("b", Dtype(77), {{M, 4}}, 1);', "there is no dtype 77"),
    "operation": (
        f"{_A}co_await pe.map(Op(200), a.tile(), {{a.tile()}}, {{{{M, 4}}}});",
        "there is no operation 200",
    ),
    "reduction": (
        f"{_A}co_await pe.reduce(Reduction(9), a.tile(), a.tile(), {{{{M, 4}}}}, false);",
        "there is no reduction 9",
    ),
    "start": (
        f"{_A}co_await pe.load(a.tile(), args.tensor(0), {{{{{_FAR}, M, 4}}}});",
        "starts at 9223372036854775807",
    ),
    "step": (
        f"{_A}co_await pe.load(a.tile(), args.tensor(0), {{{{0, M, 4, {_FAR}}}}});",
        "step 9223372036854775807",
    ),
    "shift": (
        f"{_A}co_await pe.fill(a.tile().shift(M, {_FAR}), 0, {{{{M, 4}}}});",
        "a tile of buffer 'a' starts at element 9223372036854775807",
    ),
    "window": (
        f"{_A}co_await pe.fill(a.tile().window(M, {{{{N, 1LL << 62}}}}), 0, {{{{N, 4}}}});",
        "a tile of buffer 'a' moves by 4611686018427387904",
    ),
    "table": (
        f"{_A}co_await pe.take(a.tile(), a.tile().rename(M, K), K, -5, a.tile(), {{{{M, 4}}}});",
        "a table of buffer 'a' has -5 positions",
    ),
    "number": (
        f"{_A}Index n = co_await pe.number(args.tensor(0), {{{_FAR}}});\nco_await pe.fill(a.tile(), n, {{{{M, 4}}}});",
        "is f32; a number is i32 or i64",
    ),
}


@pytest.mark.parametrize("name", _MISUSES)
def test_a_misuse_is_an_error(name):
    body, words = _MISUSES[name]
    with pytest.raises(load().SimulationError, match=words):
        run(f"KERNEL(k) {{\n{body}\nco_return;\n}}", {"x": np.ones(8, np.float32)}, [0])
