"""Kernels with names that are words of C++, of the device interface or of the emitted text."""

import re
import subprocess

from backends.registry import REGISTRY, target
from backends.sim import spelling
from backends.sim.backend import COMPILER, Sim
from backends.sim.native.load import device_include
from ir.autoschedule.autoschedule import plain
from ir.lower.lower import lower
from testing.samples.samples import spec_of

MACHINE = target("npu_small")
BACKEND = Sim(REGISTRY.manifest("sim"))


def device_words():
    """The definitions of `device.h` and of the headers that it includes: macros and functions."""
    command = [COMPILER, "-std=c++20", f"-I{device_include()}", "-E", "-dM", "-x", "c++", "-"]
    text = subprocess.run(
        command, input='#include "device.h"\n', capture_output=True, text=True, check=True
    ).stdout
    return [w for w in re.findall(r"#define (\w+)", text) if not w.startswith("_")]


def test_every_macro_of_the_interface_is_a_word():
    names = [w for w in device_words() if w.upper() == w and not w.endswith("_")]
    assert "INT64_MAX" in names and "KERNEL" in names
    assert not [w for w in names if not spelling.NAMES.is_word(w)]


def test_a_name_that_is_no_word_stays():
    spec = spec_of("y[m] = new[m] + tile[m]", inputs="new: f32[M], tile: f32[M]", result="f32[M]")
    nest = lower(spec, plain(spec, MACHINE, {"M": 9}), MACHINE, {"M": 9})
    assert spelling.NAMES.spelled(nest) is nest
    assert "tile_g" in BACKEND.emit(nest, MACHINE)
