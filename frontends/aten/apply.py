"""Applying: one call of an ATen operator, as equations of a builder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch._ops import OpOverload

from frontends.aten.table import require
from frontends.builder import Builder, Meta, Value
from ir.errors import KernelError


def operator_name(operator: OpOverload) -> str:
    """`add.Tensor`; `relu` where the overload is the default one."""
    name, _, overload = str(operator).removeprefix("aten.").rpartition(".")
    return name if overload == "default" else f"{name}.{overload}"


def apply(
    builder: Builder,
    operator: OpOverload,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    out: tuple[Meta, ...],
    where: str = "",
) -> tuple[Value, ...]:
    """The results of a call whose tensors are Values.

    out: a Meta for each result that PyTorch computes.  where: the module line, for errors. Raises
    KernelError for an operator without a rule, and for arguments that its rule does not take.
    """
    rule = require(operator_name(operator), where)
    schema = operator._schema.arguments
    bound = {a.name: a.default_value for a in schema if a.has_default_value()}
    bound |= dict(zip((a.name for a in schema), args, strict=False)) | dict(kwargs)
    for ignored in ("layout", "device", "pin_memory", "memory_format", "dtype", "generator", "out"):
        bound.pop(ignored, None)
    made = rule(builder, out[0] if len(out) == 1 else out, **bound)
    results = made if isinstance(made, tuple) else (made,)
    if len(results) != len(out):
        raise AssertionError(f"{operator}: {len(results)} results, not {len(out)}")
    for result, meta in zip(results, out, strict=True):
        if result is not None and result.meta != meta:
            raise KernelError(f"{operator}: the rule gives {result.meta}, PyTorch {meta}")
    return results
