"""A trace: a module or function of PyTorch as an exported graph of ATen operators.

An operator that has a rule (`frontends/aten`) stays whole, any other is decomposed where PyTorch
knows how. Tensors may be fake (`FakeTensorMode`): then no memory is taken and nothing is computed.
"""

from __future__ import annotations

import inspect
import logging
import traceback
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export import Dim, ExportedProgram, default_decompositions, export
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from frontends.aten.apply import operator_name
from frontends.aten.table import find
from frontends.pytorch.foreign import stem
from frontends.pytorch.recurrent_shapes import NETWORKS, recurrent_shapes
from frontends.pytorch.unique_shapes import unique_shapes
from ir.errors import KernelError

Dynamic = Mapping[str, Mapping[int, str]]  # an argument's dimensions whose sizes have names
_LOGS = ("torch.fx.experimental.symbolic_shapes", "torch.export", "torch._export",
         "torch._subclasses.fake_tensor")  # fmt: skip
_LIBRARY = str(Path(torch.__file__).parent)
_MOST_WORDS = 1200  # characters of PyTorch's message in an error


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
    shapes = _dynamic_shapes(module, dynamic or {})
    with quiet(), recurrent_shapes(), unique_shapes(), _no_fast_path(), _registered(module):
        try:
            program = export(
                module, tuple(args), dict(kwargs or {}), strict=False, dynamic_shapes=shapes
            )
        except Exception as error:  # the module's own code runs here
            raise _fault(module, error, bool(dynamic)) from error
        return decomposed(program, left)


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


def _dynamic_shapes(module: torch.nn.Module, dynamic: Dynamic) -> dict[str, Any] | None:
    if not dynamic:
        return None
    names = list(inspect.signature(module.forward).parameters)
    unknown = [name for name in dynamic if name not in names]
    if unknown:
        raise KernelError(
            f"the module has no argument `{unknown[0]}`",
            allowed=", ".join(names),
            hint="name the arguments of `forward` whose sizes stay open",
        )
    return {n: {d: Dim.DYNAMIC for d in dynamic[n]} if n in dynamic else None for n in names}


def _fault(module: torch.nn.Module, error: Exception, dynamic: bool) -> KernelError:
    name = called(module)
    kind = type(error).__name__ + str(error)
    text = f"{type(error).__name__}: {error}".partition("\n\n")[0].strip()[:_MOST_WORDS]
    where = _line(error)
    if "DataDependent" in kind or "data-dependent" in kind:
        return KernelError(
            f"`{name}` decides by the values of its tensors: {text}",
            where=where,
            hint="write the decision with torch.where, or take it out of the module",
        )
    if dynamic and ("onstraint" in kind or "dynamic" in kind):
        return KernelError(
            f"`{name}` fixes a size that should stay open: {text}",
            where=where,
            hint="leave that dimension out of the open ones",
        )
    return KernelError(
        f"`{name}` cannot be exported: {text}",
        where=where,
        hint="torch.export.export(module, args, strict=False) must take it",
    )


def called(subject: torch.nn.Module | Callable[..., Any]) -> str:
    """What a module or function is called."""
    subject = subject.function if isinstance(subject, _Wrapped) else subject
    return getattr(subject, "__name__", type(subject).__name__)


def _line(error: Exception) -> str:
    """The innermost line of the module's own code that an error came through."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if not f.filename.startswith((_LIBRARY, "<")) and f.filename != __file__]
    return f"{Path(own[-1].filename).name}:{own[-1].lineno}: {own[-1].line}" if own else ""


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
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for log, level in zip(logs, before, strict=True):
            log.setLevel(level)


@contextmanager
def _no_fast_path() -> Any:
    """Attention in single operators, not in the fused one of inference."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)
