"""A solution of KernelBench: a file with `ModelNew`, whose forward calls a network's kernels.

    text = solution(problem, made).text(network, {spec.name: KernelText(source, workspace), ...})

The file holds the problem itself, then the kernels' sources, then what runs them, then the steps of the call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._pytree import TreeSpec

from frontends.dtypes import TORCH
from frontends.kernelbench.call_text import CHECK, FLAT, LEAVES, local
from frontends.kernelbench.parts import HeldTensor, LeftTensor, ProblemCall
from frontends.kernelbench.problem import Problem
from frontends.kernelbench.solution import Solution
from frontends.pytorch.imported import Imported, ResultLeaf
from ir.errors import KernelError
from ir.sizes import bind, shape
from ir.spec import Number

_MOST_ELEMENTS = 4096  # of a constant tensor that is written out


def solution(problem: Problem, made: Imported) -> Solution:
    """What of the file is known before there are kernels.

    made: from the problem. Raises KernelError for calls that are left to PyTorch, for results
    without elements, for constants that are too large to be written or have no values, for complex
    parameters, and for results of an unknown structure.
    """
    if made.external:
        raise KernelError(f"`{made.external[0].operator}` is left to PyTorch, no kernel calls it")
    if empty := [t.name for t in made.spec.outputs if Number(0) in t.shape]:
        raise KernelError(f"the problem's result `{empty[0]}` has no elements, no kernel makes it")
    for one in made.held:
        if one.complex:
            raise KernelError(
                f"the problem's `{one.path}` is complex, and a file's kernels take real tensors",
                hint="keep torch.view_as_real(x) as the parameter or buffer",
            )
    specs, sizes = {t.name: t for t in made.spec.inputs}, bind(made.spec, {})
    held = (
        HeldTensor(h.name, h.path, str(TORCH[specs[h.name].dtype]), shape(specs[h.name], sizes))
        for h in made.held
    )
    call = ProblemCall(
        given=tuple(_given(made)),
        arguments=tuple(a.name for a in made.arguments if a.name),
        held=tuple(held),
        numbers=tuple((name, _tensor(tensor)) for name, tensor in made.constants.items()),
        seed=made.seed,
        outputs=tuple((t.name, str(TORCH[t.dtype])) for t in made.spec.outputs),
        after=tuple(
            f"out_{name} = out_{name}.narrow({dim}, 0, int(out_{count}))"
            for name, (count, dim) in made.counts.items()
        ),
        left=tuple(_left(made)),
        result=_structure(made.structure, iter([_result(r) for r in made.results])),
    )
    return Solution(problem.source, call)


def _given(made: Imported) -> Iterator[str]:
    """The lines that name the arguments: each is checked, against literal sizes."""
    yield f"{LEAVES} = {FLAT}(args, {len(made.arguments)})"
    for place, a in enumerate(made.arguments):
        if not a.tensor and isinstance(a.value, bool | int | str | None):
            yield f"if {LEAVES}[{place}] != {a.value!r}:"
            allowed = f"allowed: {a.value!r}, as it was imported with"
            yield f'    raise ValueError(f"an argument is {{{LEAVES}[{place}]!r}}; " {allowed!r})'
    sizes = bind(made.spec, {})
    specs = {t.name: t for t in made.spec.inputs}
    first = "None"
    for place, a in enumerate(made.arguments):
        if a.name:
            t = specs[a.name]
            found = f'"{a.name}", {LEAVES}[{place}], {TORCH[t.dtype]}, {shape(t, sizes)}, {first}'
            yield f"{local(a.name)} = {CHECK}({found})"
            first = local(a.name) if first == "None" else first


def _tensor(tensor: torch.Tensor) -> str:
    """Code that makes a constant."""
    return f"torch.tensor({_numbers(tensor)}, dtype={tensor.dtype}, device=device)"


def _numbers(tensor: torch.Tensor) -> str:
    """A constant's values as code."""
    if isinstance(tensor, FakeTensor):
        if tensor.constant is None:
            raise KernelError(
                "the module holds a constant whose values are not known",
                hint="make it a buffer of the module",
            )
        tensor = tensor.constant
    if tensor.numel() > _MOST_ELEMENTS:
        raise KernelError(
            f"the module holds a constant of {tensor.numel()} elements",
            allowed=f"{_MOST_ELEMENTS}",
            hint="make it a buffer of the module",
        )
    return re.sub(r"\b(inf|nan)\b", r'float("\1")', str(tensor.tolist()))


def _held(path: str) -> str:
    parent, _, name = path.rpartition(".")
    return f'self.get_submodule("{parent}").{name}' if parent else f"self.{name}"


def _left(made: Imported) -> Iterator[LeftTensor]:
    names = {h.path: h.name for h in made.held}
    counts = {*made.counts, *(count for count, _ in made.counts.values())}
    returned = {r.key for r in made.results if r.kind == "output"}
    for m in made.mutations:
        place = f"{LEAVES}[{m.target}]" if isinstance(m.target, int) else _held(m.target)
        whole = m.result.kind == "output" and m.result.key not in {*returned, *counts}
        held = names.get(m.target) if isinstance(m.target, str) else None
        line = f"{place}.data.copy_({_result(m.result)})"
        yield LeftTensor(m.result.key if whole else None, held, line)


def _result(result: ResultLeaf) -> str:
    if result.kind == "output":
        return f"out_{result.key}"
    if result.kind == "argument":
        return f"{LEAVES}[{result.key}]"
    if result.kind == "constant" and isinstance(result.key, torch.Tensor):
        raise KernelError("the problem returns a constant tensor")
    return _held(result.key) if result.kind == "held" else repr(result.key)


def _structure(spec: TreeSpec, leaves: Any) -> str:
    if spec.is_leaf():
        return next(leaves)
    parts = [_structure(child, leaves) for child in spec.children()]
    if spec.type is tuple:
        return f"({', '.join(parts)},)"
    if spec.type is list:
        return f"[{', '.join(parts)}]"
    if spec.type is dict:
        pairs = zip(spec.context, parts, strict=True)
        return f"{{{', '.join(f'{key!r}: {part}' for key, part in pairs)}}}"
    raise KernelError(f"the problem returns a {spec.type}", allowed="tuple, list, dict")
