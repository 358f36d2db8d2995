"""A trace: a module or function of PyTorch as an exported graph of ATen operators.

An operator that has a rule (`frontends/aten`) stays whole, any other is decomposed where PyTorch
knows how. Tensors may be fake (`FakeTensorMode`): then no memory is taken and nothing is computed.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export import ExportedProgram, _trace, default_decompositions, export
from torch.fx import proxy
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from frontends.aten.apply import operator_name
from frontends.aten.table import find
from frontends.pytorch.external import stem
from frontends.pytorch.faults import fault, noted, refused_backward
from frontends.pytorch.memory import apart
from frontends.pytorch.recurrent_shapes import NETWORKS, recurrent_shapes
from frontends.pytorch.traceable import bound, dynamic_shapes, require_traceable
from frontends.pytorch.unchecked import unchecked
from frontends.pytorch.unique_shapes import unique_shapes

Dynamic = Mapping[str, Mapping[int, str]]  # an argument's dimensions whose sizes have names
_LOGS = (
    "torch.fx.experimental.symbolic_shapes",
    "torch.export",
    "torch._export",
    "torch._subclasses.fake_tensor",
)


def fake_mode() -> FakeTensorMode:
    """A mode in which modules and inputs are made without memory."""
    return FakeTensorMode(allow_non_fake_inputs=True, shape_env=ShapeEnv())


def trace(
    subject: torch.nn.Module | Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    dynamic: Dynamic | None = None,
    left: Collection[str] = (),
) -> ExportedProgram:
    """The graph of a call, functional, in the mode (training or not) that the module is in.

    dynamic: the sizes that stay open, `{"x": {0: "B"}}`.  left: operators that stay whole though
    they have no rule, named without overload. Raises KernelError where PyTorch cannot export it:
    where control flow depends on data, or a named size is fixed by the code.
    """
    module = subject if isinstance(subject, torch.nn.Module) else _Wrapped(subject)
    args, kwargs = tuple(args), dict(kwargs or {})
    require_traceable(module, args, kwargs)
    shapes = dynamic_shapes(bound(module.forward, args, kwargs), dynamic or {})
    args, kwargs = apart((args, kwargs))
    lines: list[str] = []
    with (
        quiet(),
        recurrent_shapes(),
        unique_shapes(),
        unchecked(),
        _no_fast_path(),
        _registered(module),
        _gradients(lines),
        _anchored(subject),
    ):
        try:
            program = export(module, args, kwargs, strict=False, dynamic_shapes=shapes)
            return decomposed(program, left)
        except Exception as error:  # the module's own code runs here
            line = lines[-1] if lines else ""
            raise fault(called(module), module, error, bool(dynamic), line) from error


def decomposed(program: ExportedProgram, left: Collection[str] = ()) -> ExportedProgram:
    """The same graph in operators that have rules, as far as decompositions are known."""
    return program.run_decompositions(dict(_table(frozenset(left))))


def operators(program: ExportedProgram) -> tuple[OpOverload, ...]:
    """The operators of a graph, each once, in order."""
    graphs = [m.graph for m in program.graph_module.modules() if hasattr(m, "graph")]
    targets = (n.target for g in graphs for n in g.nodes if n.op == "call_function")
    return tuple(dict.fromkeys(t for t in targets if isinstance(t, OpOverload)))


@cache
def _table(left: frozenset[str]) -> Mapping[OpOverload, Callable[..., Any]]:
    """The decompositions of operators that have no rule, and are not left to PyTorch."""
    table = dict(default_decompositions().items()) | _DECOMPOSITIONS
    return {o: f for o, f in table.items() if not _whole(o, left)}


def _whole(operator: Any, left: Collection[str]) -> bool:
    if getattr(operator, "namespace", "") != "aten":
        return False
    name = operator_name(operator)
    return find(name) is not None or stem(operator) in left or stem(operator) in NETWORKS


class _Wrapped(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]):
        super().__init__()
        self.function = function
        self.forward = function


def _dropped(x: torch.Tensor, p: float, train: bool) -> torch.Tensor:
    return torch.ops.aten.native_dropout(x, p, True)[0] if train and p else x.clone()


_DECOMPOSITIONS = {torch.ops.aten.dropout.default: _dropped}


def called(subject: torch.nn.Module | Callable[..., Any]) -> str:
    """What a module or function is called."""
    subject = subject.function if isinstance(subject, _Wrapped) else subject
    return getattr(subject, "__name__", type(subject).__name__)


@contextmanager
def _registered(module: torch.nn.Module) -> Any:
    """Tensors that are plain attributes of modules as buffers, so that one may be assigned."""
    found = [
        (part, name, value)
        for part in module.modules()
        for name, value in list(vars(part).items())
        if isinstance(value, torch.Tensor)
    ]
    for part, name, value in found:
        delattr(part, name)
        part.register_buffer(name, value, persistent=False)
    try:
        yield
    finally:
        for part, name, value in found:
            delattr(part, name)
            setattr(part, name, value)


@contextmanager
def quiet() -> Any:
    """Keeps PyTorch from telling what an error says anyway."""
    logs = [logging.getLogger(name) for name in _LOGS]
    before = [log.level for log in logs]
    for log in logs:
        log.setLevel(logging.CRITICAL)
    _trace.print = lambda *_, **__: None  # of the graph so far, where a trace fails
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        del _trace.print
        for log, level in zip(logs, before, strict=True):
            log.setLevel(level)


@contextmanager
def _gradients(lines: list[str]) -> Any:
    """Notes the lines at which the module computes gradients, and refuses those that would be left
    in tensors."""
    before = torch.autograd.grad, torch.autograd.backward
    torch.autograd.grad, torch.autograd.backward = noted(before[0], lines), refused_backward
    try:
        yield
    finally:
        torch.autograd.grad, torch.autograd.backward = before


@contextmanager
def _anchored(subject: Any) -> Any:
    """Keeps the lines of a function's own code in the graph, as those of `forward` are. An
    older torch (2.11) has no such anchors: an error in a function names no line there."""
    anchors = getattr(proxy, "_STACK_TRACE_ANCHORS", None)
    code = getattr(subject, "__code__", None)
    place = code and (code.co_filename, code.co_name)
    added = anchors is not None and place and place not in anchors
    if added:
        anchors.add(place)
    try:
        yield
    finally:
        if added:
            anchors.discard(place)


@contextmanager
def _no_fast_path() -> Any:
    """Attention in single operators, not in the fused one of inference."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)
