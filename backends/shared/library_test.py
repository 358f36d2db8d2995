"""A library without one of a nest's launches is refused; writes next to a tensor or to an input are
detected."""

from __future__ import annotations

import re

import numpy as np
import pytest

from backends.backend import BackendError, Built
from backends.registry import target
from backends.shared.arrays import given, results
from backends.shared.compiler import Compiler
from backends.shared.host import PRELUDE
from backends.shared.library import loaded
from backends.shared.names import Names
from ir.lower.lower import lower
from testing.samples.samples import decisions, spec_of

SPEC = spec_of("y[m] = x[m] * 2.0", inputs="x: f32[M]", result="f32[M]")
SIZES = {"M": 8}
NEST = lower(SPEC, decisions(SPEC), target("cpu"), SIZES)
NAMES = Names(frozenset(), re.compile("-"), re.compile("-"), ("t",))
(FUNCTION,) = (NAMES.launch(launch.name) for launch in NEST.launches)
COMPILER = Compiler("g++", ("-std=c++20", "-shared", "-fPIC"))
INPUTS = {"x": np.arange(8, dtype=np.float32)}


def build(folder, line, function=FUNCTION):
    source = f"""#include "launch.h"
KERNEL({function}) {{
  const Array<float> x = args.array<float>(0), y = args.array<float>(1);
  for (Index m = 0; m < args.size(0); ++m) {line}
}}
"""
    return COMPILER.build(source, folder, "kernel.cc", (PRELUDE,))


def load(built, count=1):
    return loaded(built, NAMES, NEST, SIZES, given(NEST, INPUTS), threads=1, count=count)


def run(folder, line, function=FUNCTION):
    with load(build(folder, line, function)) as kernel:
        (((name, call),),) = kernel.calls
        assert name == NEST.launches[0].name
        kernel.seconds(call)
    return results(NEST, kernel.sets[0], INPUTS)


def test_tensors_and_sizes_come_in_their_order(tmp_path):
    np.testing.assert_array_equal(run(tmp_path, "y(m) = x(m) * 2;")["y"], 2 * INPUTS["x"])


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("y(m + 1) = 1;", "the kernel writes outside `y`"),
        ("x(m - 1) = 1;", "the kernel writes outside `x`"),
        ("x(m) = 1;", "the kernel changed its input `x`"),
    ],
)
def test_a_write_to_what_is_no_output_is_refused(line, reason, tmp_path):
    with pytest.raises(BackendError, match=reason) as caught:
        run(tmp_path, line)
    assert caught.value.stage == "check"


def test_a_source_without_the_launch_is_refused(tmp_path):
    with pytest.raises(BackendError, match=f"the source defines no `{FUNCTION}`"):
        run(tmp_path, ";", "another")


def test_what_is_no_library_is_refused(tmp_path):
    (tmp_path / "kernel.so").write_text("")
    with pytest.raises(BackendError, match="the library cannot be loaded"):
        with load(Built(tmp_path / "kernel.so")):
            pass


def test_each_set_has_outputs_of_its_own(tmp_path):
    built = build(tmp_path, "y(m) = y(m) > 0 ? y(m) + 1 : 1;")
    with load(built, count=3) as kernel:
        for number in (0, 1, 1, 2):
            kernel.seconds(*kernel.together(number))
    found = [results(NEST, held, INPUTS)["y"][0] for held in kernel.sets]
    assert found == [1, 2, 1]


def test_a_kernel_that_ends_its_process_ends_nothing_else(tmp_path):
    with pytest.raises(BackendError, match="the kernel died of SIGSEGV") as caught:
        run(tmp_path, "y(m << 40) = 1;")
    assert (caught.value.stage, caught.value.kind) == ("check", "crash")
