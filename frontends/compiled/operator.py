"""Calls of compiled modules as operators of `torch.library`, so that `torch.compile` takes them whole.

A call that changes nothing is `speciate::call`, which returns its outputs. One that changes tensors
or draws random numbers is `speciate::call_changing`: it is given the outputs to fill, as PyTorch
does not trace operators that change lists of tensors and return some. Both find the call by a key,
which is a constant of the traced graph.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4
from weakref import WeakValueDictionary

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

from backends.program.tensors import TORCH
from frontends.compiled.call import ModuleCall
from ir.errors import KernelError
from ir.sizes import shape

_CALLS: WeakValueDictionary[str, ModuleCall] = WeakValueDictionary()
_PROCESS, _NUMBERS = uuid4().hex, itertools.count()


def registered(call: ModuleCall) -> str:
    """The key by which the operators find a call, as long as it lives."""
    key = f"{call.linked.network.name}-{_PROCESS}-{next(_NUMBERS)}"
    _CALLS[key] = call
    return key


def _found(key: str) -> ModuleCall:
    if key not in _CALLS:
        raise KernelError(
            f"the compiled module of the call `{key}` is gone",
            hint="keep the module as long as what `torch.compile` made of it",
        )
    return _CALLS[key]


def _call(
    key: str, given: Sequence[torch.Tensor], held: Sequence[torch.Tensor]
) -> list[torch.Tensor]:
    return _found(key).on(given, held)


def _call_changing(
    key: str,
    given: Sequence[torch.Tensor],
    held: Sequence[torch.Tensor],
    changed: Sequence[torch.Tensor],
    outputs: Sequence[torch.Tensor],
) -> None:
    call = _found(key)
    made = call.on(given, held)
    for place, tensor in zip((*outputs, *changed), made, strict=True):
        place.copy_(tensor)


def _empty(call: ModuleCall, like: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Tensors like the outputs of a call, without values."""
    place = like[0].device if like else torch.device(call.linked.place)
    return [
        torch.empty(shape(t, {}), dtype=TORCH[t.dtype], device=place) for t in call.result_tensors
    ]


call_operator = torch.library.custom_op(
    "speciate::call",
    _call,
    mutates_args=(),
    schema="(str key, Tensor[] given, Tensor[] held) -> Tensor[]",
)
call_operator.register_fake(lambda key, given, held: _empty(_found(key), [*given, *held]))
changing_operator = torch.library.custom_op(
    "speciate::call_changing",
    _call_changing,
    mutates_args=("changed", "outputs"),
    schema="(str key, Tensor[] given, Tensor[] held, Tensor(a!)[] changed, Tensor(b!)[] outputs)"
    " -> ()",
    tags=(torch.Tag.nondeterministic_seeded,),
)
changing_operator.register_fake(lambda key, given, held, changed, outputs: None)


def traced(call: ModuleCall, key: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """A call while `torch.compile` traces it: one operator. Parameters and buffers are inputs of the
    traced graph."""
    made = call.made
    leaves, structure = tree_flatten((args, dict(kwargs)))
    call.require_traceable(leaves, structure)
    state = {path: _tensor(call.source.module, path) for path in call.held_paths}
    held = list(state.values())
    given = [leaves[n] for n in call.argument_places]
    if torch.is_grad_enabled() and any(t.requires_grad for t in (*given, *held)):
        raise KernelError(
            "an argument or a parameter requires gradients, and kernels compute none",
            hint="call it under torch.no_grad(), or module.requires_grad_(False)",
        )
    if call.changes:
        changed = [
            state[m.target] if isinstance(m.target, str) else leaves[m.target]
            for m in made.mutations
        ]
        found = _empty(call, [*given, *held])[: len(call.result_names)]
        changing_operator(key, given, held, changed, found)
    else:
        found = call_operator(key, given, held)
    outputs = dict(zip(call.result_names, found, strict=True))
    whole = []
    for r in made.results:
        if r.kind == "output":
            whole.append(outputs[r.key])
        elif r.kind == "argument":
            whole.append(leaves[r.key])
        else:
            whole.append(state[r.key] if r.kind == "held" else r.key)
    return tree_unflatten(whole, made.structure)


def _tensor(module: Any, path: str) -> torch.Tensor:
    found = module
    for name in path.split("."):
        found = getattr(found, name)
    return found
