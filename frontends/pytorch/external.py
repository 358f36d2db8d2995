"""External calls: operators that are left to PyTorch, made between the kernels of a module.

A user names them, without overload: `_linalg_eigh`; one that is not of ATen with its namespace,
`project.product`. Whatever has an operator of the same name, with whatever overload, is left.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import torch
from torch._ops import OpOverload, OpOverloadPacket
from torch.utils._pytree import tree_leaves, tree_map

from frontends.pytorch.imported import External, Imported, Operand
from ir.errors import KernelError
from ir.network import Outside
from ir.source import near
from ir.spec import Expr

OPTION = "--allow-torch"
ExternalCall = Callable[[Sequence[torch.Tensor]], list[torch.Tensor | None]]
BY_STRIDES = (
    "as_strided",
    "as_strided_copy",
    "as_strided_scatter",
)  # what they give, layout decides


def stem(operator: OpOverload | str) -> str:
    """The name without overload: `add` of `aten.add.Tensor`; of an operator that is not of ATen
    with its namespace, `project.product`."""
    return str(operator).removeprefix("aten.").rpartition(".")[0]


def names_of(made: Imported) -> tuple[str, ...]:
    """The operators that a module leaves to PyTorch, each once, in order."""
    return tuple(dict.fromkeys(stem(f.operator) for f in made.external))


def outside(made: Imported) -> tuple[Outside, ...]:
    """The external calls as `partition` takes them; `calls` makes them, in order."""
    return tuple(Outside(f.operator, operands(f), f.outputs) for f in made.external)


def operands(external: External) -> tuple[str, ...]:
    """The tensors that a call is given, each once, in order: outputs of the spec."""
    leaves = tree_leaves((external.args, dict(external.kwargs)), is_leaf=_is_operand)
    return tuple(dict.fromkeys(leaf.name for leaf in leaves if _is_operand(leaf)))


def calls(made: Imported, place: str) -> tuple[ExternalCall, ...]:
    """What makes the external calls: given the tensors of `operands`, a function returns the leaves
    of the operator's result, in row-major order, in memory of their own; None for one that nothing
    reads.

    place: torch's name of the device that tensors lie on. KernelError for an operator that PyTorch
    lacks here.
    """
    return tuple(_call(f, place) for f in made.external)


def require_known(allowed: Collection[str]) -> None:
    """KernelError where an operator that may be left to PyTorch is none of its."""
    for name in allowed:
        if not _known(name):
            everything = {
                n.removeprefix("aten::").replace("::", ".").partition(".")[0]
                for n in torch._C._dispatch_get_all_op_names()
                if n.startswith("aten::")
            }
            raise KernelError(
                f"PyTorch has no operator `{name}`",
                where=OPTION,
                hint=near(name, sorted(everything), "name it as the error of a missing one does"),
            )


def require_called(made: Sequence[Imported], allowed: Collection[str]) -> None:
    """KernelError where no import calls an operator that may be left to PyTorch."""
    called = {name for one in made for name in names_of(one)}
    for name in allowed:
        if name not in called:
            raise KernelError(
                f"no call of `{name}` is left to PyTorch: the module has none",
                where=OPTION,
                hint="leave it out, or name an operator of the module's graph",
            )


def require_takes(operator: OpOverload, arguments: Any) -> None:
    """KernelError for a call that cannot be left to PyTorch."""
    if operator._schema.is_mutable:
        raise KernelError(f"`{operator}` changes its arguments, and cannot be left to PyTorch")
    if stem(operator) in BY_STRIDES:
        raise KernelError(
            f"`{operator}` depends on how tensors lie in memory, and cannot be left to PyTorch"
        )
    if any(isinstance(leaf, Expr) for leaf in tree_leaves(arguments)):
        raise KernelError(
            f"`{operator}` is left to PyTorch, and takes a size that stays open",
            hint="give every size a number",
        )


def _is_operand(item: Any) -> bool:
    return isinstance(item, Operand)


def _known(name: str) -> bool:
    namespace, _, plain = name.rpartition(".")
    try:
        found = getattr(getattr(torch.ops, namespace or "aten"), plain, None)
    except (AttributeError, RuntimeError):
        return False
    return isinstance(found, OpOverloadPacket)


def _operator(name: str) -> OpOverload:
    namespace, plain, overload = name.split(".")
    try:
        return getattr(getattr(getattr(torch.ops, namespace), plain), overload)
    except (AttributeError, RuntimeError) as error:
        raise KernelError(
            f"PyTorch has no operator `{name}` here", hint="import the module that registers it"
        ) from error


def _call(external: External, place: str) -> ExternalCall:
    operator, names = _operator(external.operator), operands(external)
    kwargs = dict(external.kwargs)
    placed = any(a.name == "device" for a in operator._schema.arguments)
    if placed and (kwargs.get("device") or not names):
        kwargs["device"] = torch.device(place)

    def call(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor | None]:
        by = dict(zip(names, tensors, strict=True))

        def filled(item: Any) -> Any:
            return by[item.name] if _is_operand(item) else item

        with torch.no_grad():
            found = operator(
                *tree_map(filled, external.args, is_leaf=_is_operand),
                **tree_map(filled, kwargs, is_leaf=_is_operand),
            )
        leaves = tree_leaves(found, is_leaf=lambda item: item is None)
        there = {t.untyped_storage().data_ptr() for t in tensors}
        return [
            None if name is None else _own(leaf, there)
            for leaf, name in zip(leaves, external.outputs, strict=True)
        ]

    return call


def _own(tensor: torch.Tensor, there: Collection[int]) -> torch.Tensor:
    """A result in row-major order, in memory that no operand lies in."""
    made = tensor.detach().contiguous()
    return made.clone() if made.untyped_storage().data_ptr() in there else made
