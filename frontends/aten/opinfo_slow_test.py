"""PyTorch's own samples of operators, decomposed: the equations of each call equal PyTorch's.

Left out are samples with empty or complex tensors, which the language does not have, operators
that draw random numbers, those that leave memory as it is, those that give no tensor, and the
copies that write a changed argument back.
"""

import sys
import unittest
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch._decomp import core_aten_decompositions
from torch._ops import OpOverload
from torch.func import functionalize
from torch.fx import Interpreter
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

from frontends.aten.against import agree, results

_NEEDED = ModuleType("expecttest")  # PyTorch's tables import it, for the base class of test cases
_NEEDED.TestCase = unittest.TestCase
sys.modules.setdefault("expecttest", _NEEDED)

from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402
from torch.testing._internal.opinfo.core import OpInfo, SampleInput  # noqa: E402

NAMES = set((Path(__file__).parent / "aten_160.txt").read_text().split())
SAMPLES = 16  # of one operator and dtype
LEFT_OUT = ("allclose", "normal.in_place", "sparse.mm")  # a bool, random numbers, sparse tensors
UNORDERED = (torch.ops.aten.sort.default, torch.ops.aten.topk.default)  # of equal elements
REPEATED = (  # whose rules ask for the result's size
    torch.ops.aten.repeat_interleave.Tensor,
    torch.ops.aten.repeat_interleave.self_Tensor,
)
OPEN = ("bernoulli", "copy_", "empty", "multinomial", "native_dropout", "normal", "rand", "uniform")


def sampled(info: OpInfo) -> bool:
    names = {info.name, info.aten_name, *(a.name for a in info.aliases)}
    return bool({name.rpartition(".")[2] for name in names} & NAMES)


CASES = [
    pytest.param(info, dtype, id=f"{info.formatted_name}-{dtype}".replace("torch.", ""))
    for info in op_db
    if sampled(info) and not f"{info.name}.{info.variant_test_name}".startswith(LEFT_OUT)
    for dtype in (torch.float64, torch.int64)
    if dtype in info.dtypes
]


class Checked(Interpreter):
    """Runs a graph; each call of an operator is held to its equations."""

    def call_function(self, target: Any, args: tuple, kwargs: dict) -> Any:
        result = super().call_function(target, args, kwargs)
        if not isinstance(target, OpOverload) or target.namespace != "aten" or _is_open(target):
            return result
        tensors = [t for t in tree_leaves((args, kwargs, result)) if isinstance(t, torch.Tensor)]
        if any(t.numel() == 0 or t.is_complex() for t in tensors):
            return result
        if target in REPEATED and kwargs.get("output_size") is None:
            dim = args[2] if len(args) > 2 else kwargs.get("dim")
            size = result.numel() if dim is None else result.shape[dim]
            kwargs = {**kwargs, "output_size": size}
        if any(isinstance(t, torch.Tensor) for t in tree_leaves(result)):
            (_agree_in_values if target in UNORDERED else agree)(target, *args, **kwargs)
        return result


def _agree_in_values(operator: OpOverload, x: torch.Tensor, *args: Any, **kwargs: Any) -> None:
    theirs, ours = results(operator, x, *args, **kwargs)
    names = [a.name for a in operator._schema.arguments[1:]]
    dim = {"dim": -1, **dict(zip(names, args, strict=False)), **kwargs}["dim"]
    values, places = map(torch.as_tensor, ours)
    torch.testing.assert_close(values.to(theirs[0].dtype), theirs[0])
    torch.testing.assert_close(x.gather(dim, places), theirs[0])


def _is_open(operator: OpOverload) -> bool:
    name = operator.__name__
    return any(name.startswith((word, f"new_{word}", f"_{word}")) for word in OPEN)


def samples(info: OpInfo, dtype: torch.dtype) -> Iterator[SampleInput]:
    torch.manual_seed(0)
    return islice(info.sample_inputs("cpu", dtype), SAMPLES)


@pytest.mark.parametrize(("info", "dtype"), CASES)
def test_samples(info, dtype):
    for sample in samples(info, dtype):
        leaves, tree = tree_flatten((sample.input, sample.args, sample.kwargs))
        places = [n for n, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
        tensors = [leaves[n].detach() for n in places]
        if any(t.numel() == 0 or t.is_complex() for t in tensors):
            continue

        def called(*given, leaves=leaves, places=places, tree=tree):
            filled = list(leaves)
            for n, tensor in zip(places, given, strict=True):
                filled[n] = tensor
            first, args, kwargs = tree_unflatten(filled, tree)
            return info.op(first, *args, **kwargs)

        graph = make_fx(called, decomposition_table=core_aten_decompositions())(*tensors)
        Checked(make_fx(functionalize(graph))(*tensors)).run(*tensors)
