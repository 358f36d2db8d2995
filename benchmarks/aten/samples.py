"""Samples of an operator: PyTorch's own, small ones first, or ours if PyTorch has none."""

from __future__ import annotations

import math
import sys
import unittest
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain, islice, zip_longest
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from benchmarks.aten import makers
from benchmarks.aten.call import HALVES, OperatorCall
from frontends import aten

NAMES = tuple((Path(aten.__file__).parent / "aten_160.txt").read_text(encoding="utf-8").split())
WHOLE = (torch.int64, torch.bool)
LOOKED_AT = 48  # Samples of one OpInfo.
LARGEST = 20_000  # Limit of the elements of a call's tensors.
SMALL = 4  # Calls with fewer elements come last.
EXTREMA = tuple("amax argmax clamp max maximum min minimum relu sort topk".split())
_SPECIAL = (math.nan, math.inf, -math.inf, 0.0, 1.0)  # Special values of their operands.
_OTHERS = ("masked.", "sparse.")  # Other operators with the same last name.


@cache
def op_tables() -> list[Any]:
    """Returns PyTorch's tables, its list of `OpInfo`s.

    They open a device if there is one. A process that has read them must not fork another that
    opens it.
    """
    needed = ModuleType("expecttest")  # The tables import it for the base class of test cases.
    vars(needed)["TestCase"] = unittest.TestCase
    sys.modules.setdefault("expecttest", needed)
    from torch.testing._internal.common_methods_invocations import op_db

    return op_db


def infos(name: str) -> list[Any]:
    """Returns PyTorch's tables of an operator's samples, one for each variant."""
    if name in makers.MAKERS:
        return []
    found: dict[tuple[bool, str, str], Any] = {}
    for info in op_tables():
        names = {info.name, info.aten_name, *(a.name for a in info.aliases)}
        if name in {n.rpartition(".")[2] for n in names} and not info.name.startswith(_OTHERS):
            found.setdefault((info.name == name, info.name, info.variant_test_name), info)
    exact = [info for (same, *_), info in found.items() if same]
    return exact or list(found.values())


def dtypes(name: str) -> list[torch.dtype]:
    """Returns the dtypes to try: f32, a 16-bit float, i64, and bool if f32 is not supported."""
    taken = set(makers.DTYPES.get(name, makers.FLOATS))
    if tables := infos(name):
        taken = set.union(*(set(info.dtypes) for info in tables))
    half = next(([d] for d in HALVES if d in taken), [])
    found = [torch.float32] * (torch.float32 in taken) + half
    found += [torch.int64] * (torch.int64 in taken)
    return found + [torch.bool] * (torch.bool in taken and torch.float32 not in taken)


def calls(name: str, dtype: torch.dtype, count: int) -> list[OperatorCall]:
    """Returns so many calls, alternating between variants.

    Calls of extrema with floats are repeated with NaN and infinities.
    """
    torch.manual_seed(0)
    if name in makers.MAKERS:
        return list(islice(makers.MAKERS[name](dtype), count))
    tables = [sorted(_usable(info, dtype), key=_order) for info in infos(name)]
    turns = (c for c in chain.from_iterable(zip_longest(*tables)) if c)
    unlike: Iterable[OperatorCall] = {c.text(): c for c in turns}.values()
    if name in EXTREMA and dtype.is_floating_point:
        unlike = chain.from_iterable((c, _special(c)) for c in unlike)
    return list(islice(unlike, count))


def _special(call: OperatorCall) -> OperatorCall:
    """Returns the call with special values.

    Two of three elements of its first argument are NaN, infinite, 0 or 1, and the last one is NaN.
    """
    x, *rest = call.args
    drawn = torch.Generator().manual_seed(x.numel())
    which = torch.randint(len(_SPECIAL) * 3 // 2 + 1, x.shape, generator=drawn)
    odd = torch.tensor(_SPECIAL, dtype=x.dtype)[which.clamp(max=len(_SPECIAL) - 1)]
    made = torch.where(which < len(_SPECIAL), odd, x.detach()).contiguous()
    made.view(-1)[-1] = math.nan
    return OperatorCall(call.operator, (made, *rest), call.kwargs)


def _usable(info: Any, dtype: torch.dtype) -> Iterator[OperatorCall]:
    if dtype not in info.dtypes:
        return
    for sample in islice(info.sample_inputs("cpu", dtype), LOOKED_AT):
        made = OperatorCall(info.op, (sample.input, *sample.args), sample.kwargs)
        if all(map(_written, made.tensors)) and _elements(made) <= LARGEST and _gives(made):
            yield made


def _gives(made: OperatorCall) -> bool:
    """Whether all results are tensors that the language supports, and none is random."""
    if made.kwargs.get("dropout_p"):
        return False
    return all(isinstance(r, torch.Tensor) and _written(r) for r in tree_leaves(made()))


def _written(tensor: torch.Tensor) -> bool:
    plain = not tensor.is_complex() and tensor.dtype != torch.float64
    return plain and tensor.numel() > 0 and tensor.layout == torch.strided


def _elements(made: OperatorCall) -> int:
    return sum(t.numel() for t in made.tensors)


def _order(made: OperatorCall) -> tuple[bool, int]:
    return max((t.numel() for t in made.tensors), default=SMALL) < SMALL, _elements(made)
