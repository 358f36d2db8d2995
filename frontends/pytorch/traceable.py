"""What can be traced: modules and arguments, looked at before a trace."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.nn.parameter import is_lazy
from torch.nn.utils.rnn import PackedSequence
from torch.utils._pytree import tree_leaves, tree_map

from frontends.pytorch.faults import PACKED
from ir.errors import KernelError

_QUANTISED = (  # the start of the names of PyTorch's modules with classes of quantised layers
    "torch.ao.nn.quantized",
    "torch.ao.nn.intrinsic.quantized",
    "torch.ao.nn.sparse.quantized",
    "torch.nn.quantized",
    "torch.nn.intrinsic.quantized",
)
_OBSERVER = "torch.ao.quantization.observer"
_FLOATS = (
    "compile the module as it is before quantisation; or write scale, rounding and offset as "
    "operators on tensors"
)


def require_traceable(
    module: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> None:
    """KernelError where a submodule, a parameter or an argument is of a sort that has no
    equations."""
    for path, part in module.named_modules():
        _require_plain(path, part)
    for name, value in bound(module.forward, args, kwargs).items():
        for leaf in tree_leaves(value, is_leaf=lambda item: isinstance(item, PackedSequence)):
            _require_argument(name, leaf)


def _require_plain(path: str, part: torch.nn.Module) -> None:
    where = f"{path} ({type(part).__name__})" if path else type(part).__name__
    home = type(part).__module__
    if home.startswith(_QUANTISED):
        raise KernelError("the module is quantised", where=where, hint=_FLOATS)
    if home.startswith(_OBSERVER):
        raise KernelError(
            "the module is prepared for quantisation: it observes values", where=where, hint=_FLOATS
        )
    if isinstance(part, torch.jit.ScriptModule):
        raise KernelError(
            "the module is a script of torch.jit",
            where=where,
            hint="compile the module of Python that the script was made of",
        )
    for name, tensor in (*part.named_parameters(recurse=False), *part.named_buffers(recurse=False)):
        if is_lazy(tensor):
            raise KernelError(
                f"`{name}` has no shape yet",
                where=where,
                hint="call the module once, so that its lazy parameters are made",
            )
        _require_tensor(f"`{name}`", tensor, where)


def _require_argument(name: str, leaf: Any) -> None:
    if isinstance(leaf, PackedSequence):
        raise KernelError("it is a packed sequence", where=f"argument `{name}`", hint=PACKED)
    if isinstance(leaf, torch.Tensor):
        _require_tensor("it", leaf, f"argument `{name}`")


def _require_tensor(name: str, tensor: torch.Tensor, where: str) -> None:
    if tensor.is_nested:
        raise KernelError(
            f"{name} is a nested tensor", where=where, allowed="a strided tensor", hint=PACKED
        )
    if tensor.layout is not torch.strided:
        raise KernelError(
            f"{name} is {tensor.layout}",
            where=where,
            allowed="a strided tensor",
            hint="give `.to_dense()` of it",
        )
    if tensor.is_quantized:
        raise KernelError(
            f"{name} is a quantised tensor, {tensor.dtype}",
            where=where,
            hint="give `.dequantize()` of it",
        )


def bound(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments of a call by the names of the function's parameters, without those that are
    not given. KernelError where they do not fit."""
    try:
        signature = inspect.signature(function)
    except ValueError as error:
        raise KernelError(
            f"a function of PyTorch has no names of arguments: {error}",
            hint="give a function of Python that calls it: `lambda x: torch.sin(x)`",
        ) from error
    try:
        return dict(signature.bind(*args, **kwargs).arguments)
    except TypeError as error:
        raise KernelError(
            f"the arguments do not fit the module: {error}", allowed=f"forward{signature}"
        ) from error


def dynamic_shapes(
    given: Mapping[str, Any], dynamic: Mapping[str, Mapping[int, str]]
) -> dict[str, Any] | None:
    """Which dimensions stay open, as torch.export takes it; None where all are fixed. given: the
    arguments of the call by name. KernelError for what is no dimension of a tensor."""
    for name, dims in dynamic.items():
        if name not in given:
            raise KernelError(
                f"the call is given no argument `{name}`",
                where="dynamic",
                allowed=", ".join(given),
                hint="name arguments of `forward` whose sizes stay open, and give them",
            )
        _require_dimensions(name, given[name], dims)
    if not dynamic:
        return None
    return {
        name: dict.fromkeys(dynamic[name], torch.export.Dim.DYNAMIC)
        if name in dynamic
        else tree_map(lambda _: None, value)
        for name, value in given.items()
    }


def _require_dimensions(name: str, value: Any, dims: Mapping[int, str]) -> None:
    if not isinstance(value, torch.Tensor):
        raise KernelError(
            f"the argument `{name}` is no tensor but {type(value).__name__}",
            where="dynamic",
            hint="only sizes of tensors that are arguments themselves may stay open",
        )
    for dim in dims:
        if not 0 <= dim < value.ndim:
            raise KernelError(
                f"the argument `{name}` has no dimension {dim}",
                where="dynamic",
                allowed=f"0 to {value.ndim - 1}" if value.ndim else "none: it has no dimensions",
            )
