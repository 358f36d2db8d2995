"""The description of sources is complete and follows the header; its examples are built and run."""

import re

import numpy as np
import pytest

from backends.backend import BackendError
from backends.registry import backend, target
from backends.shared.compiler import Compiler
from backends.sim.admission import CALLED, INTERNAL, require_admissible
from backends.sim.backend import COMPILER, FLAGS, include
from backends.sim.interface import EXAMPLES, declarations, interface
from backends.sim.native.kernel_fixture import from_bfloat, tiny, to_bfloat
from backends.sim.native.kernel_process import kernel_process
from backends.sim.native.load import device_include, load
from backends.sim.scalars import charged

CONTROL = {"if", "while", "for", "switch", "return", "co_await", "co_return"}
NUMBERS = {"bool", "int", "float", "double"}
HEADER = (device_include() / "device.h").read_text()


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """The examples, built as an edited source."""
    source = EXAMPLES.read_text()
    require_admissible(source)
    folder = tmp_path_factory.mktemp("examples")
    return Compiler(COMPILER, FLAGS).build(charged(source), folder, "kernel.cc", include()).file


def run(library, kernel, dtypes, sizes, tensors):
    with kernel_process(library) as place:
        load().simulate(
            tiny(),
            place,
            [(kernel, list(range(len(tensors))), list(sizes))],
            tensors,
            names=[f"t{n}" for n in range(len(tensors))],
            dtypes=dtypes,
        )


def test_a_matmul_whose_operand_is_broadcast(library):
    rng = np.random.default_rng(0)
    m, k, n = 70, 150, 90
    x, w = (to_bfloat(rng.normal(size=size)) for size in ((m, k), (k, n)))
    y = np.zeros((m, n), np.uint16)
    run(library, "project", ["bf16"] * 3, [m, k, n], [x, w, y])
    z = from_bfloat(x).astype(np.float64) @ from_bfloat(w)
    np.testing.assert_allclose(from_bfloat(y), z / (1 + np.exp(-z)), rtol=0.02, atol=0.02)


def test_a_sum_over_rows_of_processing_elements(library):
    x, total = (
        np.random.default_rng(1).normal(size=(13, 30)).astype(np.float32),
        np.ones(1, np.float32),
    )
    run(library, "total", ["f32"] * 2, [13, 30], [x, total])
    np.testing.assert_allclose(total[0], x.sum(dtype=np.float64), rtol=1e-5)


def test_windows_of_rows_that_are_gathered(library):
    x = np.random.default_rng(2).normal(size=(6, 9)).astype(np.float32)
    idx, bounds = np.array([5, 0, 3, 3, 1, 2], np.int32), np.array([1, 6], np.int64)
    y = np.zeros((6, 5), np.float32)
    run(library, "windows", ["f32", "i32", "i64", "f32"], [9], [x, idx, bounds, y])
    padded = np.pad(x, ((0, 0), (1, 1)))
    taps = np.stack([padded[:, i : i + 9 : 2] for i in range(3)]).max(0)
    np.testing.assert_array_equal(y[1:], taps[idx[1:]])
    assert not y[0].any()


def test_scans_searches_and_views(library):
    v = np.array([0.5, 2.5, -1.0, 9.0, 3.5, 1.0, 2.0, 0.0], np.float32)
    borders, y = np.array([0.0, 1.0, 2.0, 3.0], np.float32), np.zeros((4, 8), np.float32)
    run(library, "elements", ["f32"] * 3, [], [v, borders, y])
    rank = np.searchsorted(borders, v)
    np.testing.assert_allclose(y, [np.cumsum(v), rank, 10 + rank, v - v[0]], rtol=1e-6)


def public_names(text):
    """The commands of a PE, and the functions of the interface, in a header."""
    found = set(re.findall(r"virtual \w+ (\w+)\(", text))
    found |= set(re.findall(r"^  \w+ (\w+)\([^;{]*\) (?:const )?\{", text, re.M))
    found |= set(re.findall(r"^(?:inline|constexpr) \w+ (\w+)\(", text, re.M))
    return found


def test_every_command_is_declared_and_has_an_example():
    told, examples = declarations(), EXAMPLES.read_text()
    commands = public_names(HEADER) - {"scalars", "park", "await_number", "get_return_object"}
    commands -= {
        "unhandled_exception",
        "return_void",
        "await_suspend",
        "await_ready",
        "await_resume",
    }
    commands -= {"remove", "begin", "end", "add_", "initial_suspend", "final_suspend"}
    wanted = {n for n in CALLED if n in commands}
    assert {"load_shared", "send", "receive", "number", "barrier", "shift", "run_of"} <= wanted
    assert wanted == commands, "admission admits the interface"
    for name in wanted:
        assert re.search(rf"\b{name}\(", told), name
        assert re.search(rf"\b{name}\(", examples), name
    for op in re.findall(r"\w+(?=,)", HEADER.partition("enum class Op")[2].partition("};")[0]):
        assert re.search(rf"\b{op}\b", told), op


def test_what_only_the_simulator_uses_is_not_told():
    told = declarations()
    for word in ("coroutine_handle", "promise_type", "virtual void park", "scalars(", "#define"):
        assert word in HEADER and word not in told


def test_the_text_names_what_admission_admits_and_no_more():
    text = interface()
    for name in CALLED - CONTROL - NUMBERS:
        assert re.search(rf"\b{name}\b", text), name
    for name in INTERNAL:
        with pytest.raises(BackendError):
            require_admissible(f'#include "device.h"\nKERNEL(k) {{ {name}::x(); }}\n')
    assert text == backend("sim").interface(target("npu"))
