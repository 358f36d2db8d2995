"""Kernels whose names are words of C++, of the device interface or of the emitted text itself."""

import re
import subprocess

import numpy as np
import pytest

from backends.registry import REGISTRY, target
from backends.sim import spelling
from backends.sim.backend import COMPILER, FLAGS, Sim
from backends.sim.native.precompiled import kernel_include
from ir.autoschedule.autoschedule import plain
from ir.lower.lower import lower
from ir.reference.inputs import random_inputs
from ir.reference.reference import evaluate
from ir.samples.named_specs import named_specs
from ir.samples.samples import spec_of
from ir.verify import facts

MACHINE = target("npu_small")
BACKEND = Sim(REGISTRY.manifest("sim"))
FORMS = (
    "box",
    "box_n",
    "n",
    "n_at",
    "n_n",
    "n_t",
    "a__b",
    "a_b",
    "_a",
    "a_",
    "__",
    "wchar",
    "char8",
    "f32_n_0",
    "size",
    "axes",
    "slot",
    "main",
    "exp",
    "i_tiles",
    "i",
    "i_low",
    "INT64_MAX",
    "SIZE_MAX",
    "KERNEL",
    "NULL",
    "M__N",
    "M_",
    "M",
)


def right(spec, folder):
    sizes = dict(zip(facts(spec).sizes, (5, 7, 3)))
    nest = lower(spec, plain(spec, MACHINE, sizes), MACHINE, sizes)
    built = BACKEND.build(BACKEND.emit(nest, MACHINE), nest, MACHINE, folder)
    inputs = random_inputs(spec, sizes, np.random.default_rng(1))
    found = BACKEND.run(built, nest, MACHINE, sizes, inputs)
    for name, array in evaluate(spec, inputs, sizes).items():
        np.testing.assert_allclose(found[name], array, 1e-4, 1e-4, err_msg=str(spec))


def device_words():
    """What `device.h` and the headers below it define, macros and functions."""
    include = kernel_include(COMPILER, FLAGS)
    command = [COMPILER, "-std=c++20", f"-I{include}", "-E", "-dM", "-x", "c++", "-"]
    text = subprocess.run(
        command, input='#include "device.h"\n', capture_output=True, text=True, check=True
    ).stdout
    return [w for w in re.findall(r"#define (\w+)", text) if not w.startswith("_")]


def test_names_are_no_words_of_the_language(tmp_path):
    words = sorted(spelling.WORDS) + list(FORMS)
    for number, spec in enumerate(named_specs(words)):
        folder = tmp_path / str(number)
        folder.mkdir()
        right(spec, folder)


def test_every_macro_of_the_interface_is_a_word():
    names = [w for w in device_words() if w.upper() == w and not w.endswith("_")]
    assert "INT64_MAX" in names and "KERNEL" in names
    assert not [w for w in names if not spelling.is_word(w)]


def test_a_name_that_is_no_word_stays():
    spec = spec_of("y[m] = new[m] + tile[m]", inputs="new: f32[M], tile: f32[M]", result="f32[M]")
    nest = lower(spec, plain(spec, MACHINE, {"M": 9}), MACHINE, {"M": 9})
    assert spelling.spelled(nest) is nest
    assert "tile_g" in BACKEND.emit(nest, MACHINE)


@pytest.mark.parametrize(
    "inputs, equations",
    [
        ("a__b: f32[M], a_b: f32[M]", "y[m] = a__b[m] - a_b[m]"),
        ("x: f32[M, N]", "t[box, n] = x[box, n] * 2.0\ny[box] = sum(t[box, n], n)"),
        ("x: f32[M], f32_m_0: f32[M]", "y[m] = exp(x[m] * 2.0) * f32_m_0[m]"),
    ],
)
def test_no_two_names_become_one(inputs, equations, tmp_path):
    right(spec_of(*equations.splitlines(), inputs=inputs, result="f32[M]"), tmp_path)
