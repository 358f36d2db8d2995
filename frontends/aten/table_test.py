"""The table holds one rule for each operator, all of them ATen's or named with their library."""

import pytest
import torch

from frontends.aten.apply import operator_name
from frontends.aten.table import find, require, rule, rules
from ir.errors import KernelError

OVERLOADS = [
    f"{name}.{overload}"
    for name in (
        "__and__",
        "__or__",
        "__xor__",
        "__lshift__",
        "__rshift__",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "bitwise_left_shift",
        "bitwise_right_shift",
    )
    for overload in getattr(torch.ops.aten, name).overloads()
    if "out" not in overload and overload not in ("bool", "int")
]


@pytest.mark.parametrize("name", sorted(name for name in rules() if "::" not in name))
def test_rules_are_of_operators_that_there_are(name):
    packet, _, overload = name.partition(".")
    assert not overload or overload in getattr(torch.ops.aten, packet).overloads()
    assert hasattr(torch.ops.aten, packet)


def test_an_operator_has_one_rule():
    rules()
    with pytest.raises(AssertionError, match="`relu` has two rules"):
        rule("relu")(lambda b, out: None)


def test_an_overload_may_have_a_rule_of_its_own():
    assert find("add.Scalar") is find("add") is not None
    assert find("repeat_interleave.self_int") is not find("repeat_interleave.Tensor")


@pytest.mark.parametrize("operator", OVERLOADS)
def test_each_overload_of_pythons_operators_has_a_rule(operator):
    assert find(operator) is not None


def test_an_operator_of_another_library_is_named_with_its_namespace():
    with torch.library._scoped_library("speciate_table_test", "DEF") as library:
        library.define("twice(Tensor x) -> Tensor")
        operator = torch.ops.speciate_table_test.twice.default
        assert operator_name(operator) == "speciate_table_test::twice"
        assert find(operator_name(operator)) is None
    assert operator_name(torch.ops.aten.add.Tensor) == "add.Tensor"
    assert find("transformers::grouped_mm_fallback") is not None


def test_an_operator_without_a_rule_is_named():
    with pytest.raises(KernelError, match=r"`aten.nothing.here` has no equations \(line 3\)"):
        require("nothing.here", "line 3")
