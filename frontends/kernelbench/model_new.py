"""A solution of KernelBench: a file with `ModelNew`, whose forward calls a network's kernels.

    text = solution(problem, made).text(network, {spec.name: source, ...})

The file holds the problem itself, then the kernels' sources, then the calls, step by step.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._pytree import TreeSpec

from frontends.dtypes import TORCH
from frontends.kernelbench.problem import Problem
from frontends.kernelbench.solution import CHECK, LEAVES, Solution, local
from frontends.pytorch.imported import Imported, ResultLeaf
from ir.errors import KernelError
from ir.sizes import bind, shape
from ir.spec import Number

_MOST_ELEMENTS = 4096  # of a constant tensor that is written out


def solution(problem: Problem, made: Imported) -> Solution:
    """What of the file is known before there are kernels.

    made: from the problem. Raises KernelError for calls that are left to PyTorch, for results
    without elements, for constants that are too large to be written or have no values, and for
    results of an unknown structure.
    """
    if made.external:
        raise KernelError(f"`{made.external[0].operator}` is left to PyTorch, no kernel calls it")
    if empty := [t.name for t in made.spec.outputs if Number(0) in t.shape]:
        raise KernelError(f"the problem's result `{empty[0]}` has no elements, no kernel makes it")
    counts = [
        f"out_{name} = out_{name}.narrow({dim}, 0, int(out_{count}))"
        for name, (count, dim) in made.counts.items()
    ]
    return Solution(
        source=problem.source,
        given=tuple(_given(made)),
        outputs=tuple((t.name, str(TORCH[t.dtype])) for t in made.spec.outputs),
        after=(*counts, *_left(made)),
        result=_structure(made.structure, iter([_result(r) for r in made.results])),
        held=tuple(h.name for h in made.held),
    )


def _given(made: Imported) -> list[str]:
    """The lines that name the inputs: each is checked, against literal sizes."""
    lines = list(_plain(made))
    sizes = bind(made.spec, {})
    specs = {t.name: t for t in made.spec.inputs}
    places = {a.name: f"{LEAVES}[{n}]" for n, a in enumerate(made.arguments) if a.name}
    called = {name: name for name in places} | {h.name: h.path for h in made.held}
    places |= {h.name: _held(h.path) for h in made.held}
    first = next(iter(places), "")
    for name, place in places.items():
        t = specs[name]
        like = "None" if name == first else local(first)
        found = f'"{called[name]}", {place}, {TORCH[t.dtype]}, {shape(t, sizes)}, {like}'
        lines.append(f"{local(name)} = {CHECK}({found})")
    device = f"{local(first)}.device" if first else '"cpu"'
    lines += [
        f"{local(name)} = torch.tensor({_numbers(tensor)}, dtype={tensor.dtype}, device={device})"
        for name, tensor in made.constants.items()
    ]
    if made.seed is not None:
        lines.append(f"{local(made.seed)} = torch.randint(2**31, (1,)).to({device})")
    return lines


def _plain(made: Imported) -> Iterator[str]:
    """The lines that refuse another count of arguments, and other plain values."""
    count = len(made.arguments)
    yield f"if len({LEAVES}) != {count}:"
    yield f'    raise TypeError(f"`ModelNew` is given {{len({LEAVES})}} arguments; allowed: {count}")'
    for place, a in enumerate(made.arguments):
        if not a.tensor and isinstance(a.value, bool | int | str | None):
            yield f"if {LEAVES}[{place}] != {a.value!r}:"
            allowed = f"allowed: {a.value!r}, as it was imported with"
            yield f'    raise ValueError(f"an argument is {{{LEAVES}[{place}]!r}}; " {allowed!r})'


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


def _left(made: Imported) -> list[str]:
    return [
        f"{f'{LEAVES}[{m.target}]' if isinstance(m.target, int) else _held(m.target)}"
        f".data.copy_({_result(m.result)})"
        for m in made.mutations
    ]


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
