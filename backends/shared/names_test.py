"""Names that a text cannot contain are replaced; all others stay."""

from __future__ import annotations

import re

import pytest

from backends.registry import target
from backends.shared.names import Names
from ir.autoschedule.autoschedule import plain
from ir.lower.lower import lower
from testing.samples.samples import spec_of

NAMES = Names(
    frozenset(("double", "NULL")),
    macros=re.compile(r"INT\w*"),
    made=re.compile(r"_.*|box"),
    endings=("t", "i"),
    function="_launch",
)


def spelled(inputs, equation):
    spec = spec_of(equation, inputs=inputs, result="f32[M]")
    machine = target("cpu")
    return NAMES.spelled(lower(spec, plain(spec, machine, {"M": 9}), machine, {"M": 9}))


@pytest.mark.parametrize("name", ["double", "x"])
def test_a_tensor_stands_with_an_ending_so_it_may_be_a_word(name):
    nest = spelled(f"{name}: f32[M]", f"y[m] = {name}[m]")
    assert [t.name for t in nest.spec.inputs] == [name]


def test_what_a_text_makes_is_no_name():
    nest = spelled("box: f32[M]", "y[m] = box[m]")
    assert [t.name for t in nest.spec.inputs] != ["box"]


@pytest.mark.parametrize(("name", "word"), [("NULL", True), ("INT8", True), ("M", False)])
def test_a_size_stands_alone_so_it_is_no_word_or_macro(name, word):
    assert NAMES.is_word(name) is word
    spec = spec_of("y[m] = x[m]", inputs=f"x: f32[{name}]", result=f"f32[{name}]")
    machine = target("cpu")
    nest = NAMES.spelled(lower(spec, plain(spec, machine, {name: 9}), machine, {name: 9}))
    assert (nest.launches[0].sizes[0] != name) is word


def test_two_names_share_no_identifier():
    nest = spelled("x: f32[M], x_t: f32[M]", "y[m] = x[m] + x_t[m]")
    names = [t.name for t in nest.spec.inputs]
    made = [f"{n}_{e}" for n in names for e in NAMES.endings]
    assert len(set(made)) == len(made)


def test_a_launch_is_a_function_without_two_underscores_in_a_row():
    assert NAMES.launch("a__b_0") == "a_b_0_launch"
