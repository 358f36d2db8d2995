"""Every operator of a list has a rule, or decomposes into operators that have one.

`aten_160.txt` holds the names, one a line; each stands for all of its overloads that write nothing.
"""

from pathlib import Path

import pytest
import torch
from torch._decomp import core_aten_decompositions
from torch._ops import OpOverload
from torch.fx.experimental.proxy_tensor import make_fx

from frontends.aten.apply import operator_name
from frontends.aten.table import find

ATEN = torch.ops.aten
NAMES = (Path(__file__).parent / "aten_160.txt").read_text().split()
X = torch.ones(1, 2, 4, 4, dtype=torch.float64)
EXAMPLES = {  # arguments for overloads that decompose
    ATEN.where.default: (X > 0,),
    ATEN.gather_backward.default: (X, X, 0, X.long(), False),
    ATEN._upsample_bicubic2d_aa.vec: (X, [2, 2], False, None),
    ATEN.upsample_nearest2d.vec: (X, [2, 2], None),
    ATEN.scaled_dot_product_attention.default: (X, X, X),
}


def overloads(name: str) -> list[OpOverload]:
    """The overloads of an operator that write nothing and take or give a tensor."""
    packet = getattr(ATEN, name)
    found = [getattr(packet, overload) for overload in packet.overloads()]
    return [o for o in found if not _writes(o) and not _of_lists(o) and _has_tensors(o)]


def _writes(operator: OpOverload) -> bool:
    return any(a.alias_info and a.alias_info.is_write for a in operator._schema.arguments)


def _of_lists(operator: OpOverload) -> bool:
    """Whether it is one of Python's operators on lists, such as `index`."""
    return any(
        a.name == "self" and str(a.type).startswith("List") for a in operator._schema.arguments
    )


def _has_tensors(operator: OpOverload) -> bool:
    schema = operator._schema
    return any("Tensor" in str(v.type) for v in (*schema.arguments, *schema.returns))


def missing(operator: OpOverload) -> set[str]:
    """The operators without a rule that a call comes to."""
    if find(operator_name(operator)):
        return set()
    if operator not in EXAMPLES:
        return {operator_name(operator)}
    graph = make_fx(operator, decomposition_table=core_aten_decompositions())(*EXAMPLES[operator])
    called = {n.target for n in graph.graph.nodes if isinstance(n.target, OpOverload)}
    return {operator_name(o) for o in called if not find(operator_name(o))}


@pytest.mark.parametrize("name", NAMES)
def test_each_overload_has_equations(name):
    found = overloads(name)
    assert found, f"{name} has no overloads"
    assert not set().union(*map(missing, found))
