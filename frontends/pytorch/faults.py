"""Faults: what torch.export says of a module, in the terms of the one who wrote the module."""

from __future__ import annotations

import re
import sysconfig
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import sympy
import torch
from torch.nn.utils.rnn import PackedSequence

from ir.errors import KernelError

_MOST_WORDS = 1200  # characters of PyTorch's message in an error
_LIBRARIES = tuple(  # whose lines are not the module's own
    str(path)
    for path in (
        *(Path(library.__file__).parent for library in (torch, sympy)),
        sysconfig.get_path("stdlib") + "/",
    )
)
_PACKAGES = ("site-packages", "dist-packages")  # may lie below the standard library
PACKED = "give the padded tensor, and the lengths as a tensor to mask with"
_VALUES = "a Python number or a decision (`if`, `while`, `int()`, `float()`, `bool()`, `.item()`)"
_AS_TENSORS = "keep it a tensor: a decision is torch.where, a number a tensor of no dimensions"
_TREE = "torch.utils._pytree.register_pytree_node(..., flatten_with_keys_fn=...); or use a dict"


def fault(
    name: str,
    module: torch.nn.Module,
    error: Exception,
    open_sizes: bool,
    gradients: str = "",
) -> KernelError:
    """What an error of a trace is to a user. name: of the module.  open_sizes: whether sizes were
    to stay open.  gradients: the line at which the module computed gradients, if it did."""
    if isinstance(error, KernelError):
        return error if error.where else error.within(place(module, error))
    where = place(module, error)
    text = f"{type(error).__name__}: {error}".partition("\n\n")[0].strip()[:_MOST_WORDS]
    kind = type(error).__name__ + str(error)
    if _has_packed(error):
        return KernelError(f"`{name}` packs sequences", where=where, hint=PACKED)
    if "DataDependent" in kind or "data-dependent" in kind:
        return KernelError(
            f"`{name}` decides by the values of its tensors: it makes {_VALUES} of one",
            where=where,
            hint=_AS_TENSORS,
        )
    if gradients:
        return KernelError(
            f"`{name}` computes gradients in its call, which cannot be exported here: {text}",
            where=gradients,
            hint="write the gradient as operators on tensors, or leave `create_graph` out",
        )
    for pattern, said, hint in _SAID:
        if found := re.search(pattern, kind):
            said = said.format(*(g.rpartition(".")[2] for g in found.groups()))
            return KernelError(f"`{name}` {said}", where=where, hint=hint)
    if open_sizes and ("onstraint" in kind or "dynamic" in kind):
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


_SAID = (  # what PyTorch says, what it means, what to do
    (
        r"Found <class '(.+?)'> in output",
        "returns a `{}`, which PyTorch cannot take apart into tensors",
        f"register the class: {_TREE}",
    ),
    (
        r"flatten_with_keys_fn for type: <class '(.+?)'>",
        "is given a `{}`, whose parts have no names",
        f"register the class with names: {_TREE}",
    ),
    (
        r"Unsupported input type <class '(.+?)'>",
        "is given a `{}`",
        "give tensors, numbers, texts and None, in tuples, lists, dicts and registered classes",
    ),
    (
        r"expected compiled_fn to be GraphModule",
        "changes a tensor that shares memory with another one of the call",
        "give each its own memory: `.clone()`",
    ),
    (
        r"Must provide a tree_name",
        "takes named arguments by `**`, which PyTorch cannot trace beside sizes that stay open",
        "name them in the signature of `forward`, or fix all sizes",
    ),
    (
        r"\.numpy\(\) is not supported",
        "takes values out of its tensors (`.numpy()`)",
        "compute with operators of torch",
    ),
)


def place(module: torch.nn.Module, error: BaseException) -> str:
    """`layers.0 (Attention), model.py:12: y = x.item()`: the innermost submodule and line of the
    module's own code that an error came through; what of that is known."""
    paths = {id(part): path for path, part in module.named_modules()}
    part = ""
    for frame in _frames(error):
        own = frame.f_locals.get("self")
        if path := paths.get(id(own)):
            part = f"{path} ({type(own).__name__})"
    steps = [s for s in traceback.extract_tb(error.__traceback__) if _is_own(s.filename)]
    line = f"{Path(steps[-1].filename).name}:{steps[-1].lineno}: {steps[-1].line}" if steps else ""
    return ", ".join(p for p in (part, line) if p)


def calling_line() -> str:
    """The line of the module's own code that is running."""
    steps = [s for s in traceback.extract_stack() if _is_own(s.filename)]
    return f"{Path(steps[-1].filename).name}:{steps[-1].lineno}: {steps[-1].line}" if steps else ""


def _is_own(file: str) -> bool:
    if Path(file).parent == Path(__file__).parent and not file.endswith("_test.py"):
        return False
    if any(f"/{package}/" in file for package in _PACKAGES):
        return not file.startswith(_LIBRARIES[:2])
    return not file.startswith((*_LIBRARIES, "<"))


def _frames(error: BaseException) -> Iterator[FrameType]:
    step = error.__traceback__
    while step:
        yield step.tb_frame
        step = step.tb_next


def _has_packed(error: BaseException) -> bool:
    """Whether a packed sequence was at hand where an error arose."""
    return any(
        isinstance(value, PackedSequence)
        for frame in _frames(error)
        for value in list(frame.f_locals.values())
    )


def refused_backward(*_: object, **__: object) -> None:
    """Stands for `torch.autograd.backward` while a module is traced."""
    raise KernelError(
        "the module calls `.backward()`, which would leave gradients behind",
        where=calling_line(),
        hint="torch.autograd.grad returns them; or call `.backward()` outside of the module",
    )


def noted(function: Callable[..., object], lines: list[str]) -> Callable[..., object]:
    """A function that also notes the line of the module that calls it."""

    def run(*args: object, **kwargs: object) -> object:
        lines.append(calling_line())
        return function(*args, **kwargs)

    return run
