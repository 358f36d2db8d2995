"""Applying: one call of an ATen operator, as equations of a builder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch._ops import OpOverload
from torch.utils._pytree import tree_leaves

from frontends.aten.table import require
from frontends.builder import Builder, Meta, Value
from ir.errors import KernelError


def operator_name(operator: OpOverload) -> str:
    """`add.Tensor`; `relu` where the overload is the default one; `project::product` of another
    namespace."""
    name, _, overload = str(operator).removeprefix("aten.").rpartition(".")
    name = name if operator.namespace == "aten" else operator._schema.name
    return name if overload == "default" else f"{name}.{overload}"


def apply(
    builder: Builder,
    operator: OpOverload,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    out: tuple[Meta | None, ...],
    where: str = "",
) -> tuple[Value | None, ...]:
    """The results of a call whose tensors are Values.

    out: a Meta for each result that PyTorch computes, None for one that it leaves out; that of a
    complex one is real, with a last dimension of 2 (`torch.view_as_real`).  where: the module line,
    for errors. Raises KernelError for an operator without a rule, and for arguments that its rule
    does not take: a tensor whose size depends on data (`Builder.counts`) is one. Such a result has
    its largest size.
    """
    rule = require(operator_name(operator), where)
    schema = operator._schema.arguments
    bound = {a.name: a.default_value for a in schema if a.has_default_value()}
    bound |= dict(zip((a.name for a in schema), args, strict=False)) | dict(kwargs)
    for ignored in ("layout", "device", "pin_memory", "memory_format", "dtype", "generator", "out"):
        bound.pop(ignored, None)
    require_sized(builder, operator, bound)
    builder.stem = operator._schema.name.rpartition("::")[2].strip("_").lower()
    made = rule(builder, out[0] if len(out) == 1 else out, **bound)
    results = made if isinstance(made, tuple) else (made,)
    if len(results) != len(out):
        raise AssertionError(f"{operator}: {len(results)} results, not {len(out)}")
    for result, meta in zip(results, out, strict=True):
        if result is not None and not _fits(builder, result, meta):
            raise KernelError(f"{operator}: the rule gives {result.meta}, PyTorch {meta}")
    return results


def require_sized(builder: Builder, operator: OpOverload, bound: Mapping[str, Any]) -> None:
    """KernelError where an argument's size depends on data. bound: arguments by name."""
    for item in tree_leaves(list(bound.values())):
        if isinstance(item, Value) and item.name in builder.counts:
            if operator_name(operator) == "unbind.int" and _apart(builder, item, bound["dim"]):
                continue
            raise KernelError(
                f"`aten.{operator_name(operator)}` is given a tensor whose size depends on data",
                allowed="such a tensor as a result only, or its parts (`unbind`)",
                hint="compute with all elements and a mask: `torch.where(mask, x, 0)`",
            )


def _apart(builder: Builder, value: Value, dim: int) -> bool:
    """Whether a dimension is another than the one whose size depends on data."""
    return dim % value.rank != builder.counts[value.name][1]


def _fits(builder: Builder, result: Value, meta: Meta) -> bool:
    """Whether a result is what PyTorch says, but for a size that depends on data."""
    _, dim = builder.counts.get(result.name, ("", None))
    sizes = [
        made == theirs or n == dim
        for n, (made, theirs) in enumerate(zip(result.shape, meta.shape, strict=False))
    ]
    return result.dtype == meta.dtype and result.rank == len(meta.shape) and all(sizes)
