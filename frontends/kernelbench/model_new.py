"""A solution of KernelBench: a file with `ModelNew`, whose forward calls a network's kernels.

    text = model_new(problem, made, network, {spec.name: source, ...})

The file holds the problem itself, so that `ModelNew` has its parameters, drawn in the same order; then
the kernels' sources; then the calls, step by step. Each source defines a function named as its spec
that takes the spec's inputs as contiguous tensors and returns its outputs, a tuple if several.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.utils._pytree import TreeSpec

from frontends.dtypes import TORCH
from frontends.kernelbench.problem import Problem
from frontends.pytorch.imported import Imported, Result
from ir.errors import KernelError
from ir.network import Network, Step
from ir.sizes import shape

_MOST_ELEMENTS = 4096  # of a constant tensor that is written out


def model_new(
    problem: Problem, made: Imported, network: Network, sources: Mapping[str, str]
) -> str:
    """The file's text.

    network: of `made.spec`, its inputs and outputs in the spec's order of names.  sources: of the
    network's kernels, by the spec's name. Raises KernelError for calls that are left to PyTorch,
    for constants that are too large to be written, and for results of an unknown structure.
    """
    if made.foreign:
        raise KernelError(f"`{made.foreign[0].operator}` is left to PyTorch, no kernel calls it")
    lines = [*_given(made), *(_call(network, step) for step in network.steps)]
    lines += _outputs(made, network) + _left(made)
    result = _structure(made.structure, iter([_result(r) for r in made.results]))
    body = "\n".join(f"        {line}" for line in [*lines, f"return {result}"])
    kernels = "\n\n\n".join(_apart({k.name: sources[k.name] for k in network.kernels()}))
    return f"""{problem.source.rstrip()}


{kernels}


class ModelNew(Model):
    def forward(self, *args):
        leaves = torch.utils._pytree.tree_leaves(args)
{body}
"""


def _given(made: Imported) -> list[str]:
    lines = [
        f"{a.name} = leaves[{place}].contiguous()"
        for place, a in enumerate(made.arguments) if a.name
    ]  # fmt: skip
    device = next((f"{a.name}.device" for a in made.arguments if a.name), '"cpu"')
    lines += [f"{h.name} = {_held(h.path)}.contiguous()" for h in made.held]
    for name, tensor in made.constants.items():
        if tensor.numel() > _MOST_ELEMENTS:
            raise KernelError(
                f"the module holds a constant of {tensor.numel()} elements",
                allowed=f"{_MOST_ELEMENTS}",
                hint="make it a buffer of the module",
            )
        lines.append(f"{name} = torch.tensor({tensor.tolist()}, dtype={tensor.dtype}, device={device})")
    if made.seed is not None:
        lines.append(f"{made.seed} = torch.randint(2**31, (1,)).to({device})")
    return lines


def _held(path: str) -> str:
    parent, _, name = path.rpartition(".")
    return f'self.get_submodule("{parent}").{name}' if parent else f"self.{name}"


def _call(network: Network, step: Step) -> str:
    given = ", ".join(
        _seen(name, network.buffer(name).shape, shape(t, {}))
        for t, name in zip(step.spec.inputs, step.inputs, strict=True)
    )
    return f"{', '.join(step.outputs)} = {step.spec.name}({given})"


def _seen(name: str, held: Sequence[Any], wanted: tuple[int, ...]) -> str:
    return name if tuple(held) == wanted else f"{name}.reshape({wanted})"


def _outputs(made: Imported, network: Network) -> list[str]:
    lines = []
    for t, (name, sizes) in zip(made.spec.outputs, network.outputs, strict=True):
        value = _seen(name, network.buffer(name).shape, tuple(sizes))
        lines.append(f"out_{t.name} = {value}.to({TORCH[t.dtype]})")
    for name, (count, dim) in made.counts.items():
        lines.append(f"out_{name} = out_{name}.narrow({dim}, 0, int(out_{count}))")
    return lines


def _left(made: Imported) -> list[str]:
    return [
        f"{f'leaves[{m.target}]' if isinstance(m.target, int) else _held(m.target)}"
        f".data.copy_({_result(m.result)})"
        for m in made.mutations
    ]


def _result(result: Result) -> str:
    if result.kind == "output":
        return f"out_{result.key}"
    if result.kind == "argument":
        return f"leaves[{result.key}]"
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


def _apart(sources: Mapping[str, str]) -> list[str]:
    """Sources side by side: a name that several define, as `launch`, is made each's own."""
    defined = {entry: _names(source) for entry, source in sources.items()}
    taken = Counter(name for names in defined.values() for name in names)
    made = []
    for entry, source in sources.items():
        if entry not in defined[entry]:
            raise AssertionError(f"the source of `{entry}` defines no function of that name")
        own = {n: f"{n}_{entry}" for n in defined[entry] if taken[n] > 1 and n != entry}
        made.append(_renamed(source, own).strip())
    return made


def _names(source: str) -> set[str]:
    """What a module defines, imports left out."""
    found = set()
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found |= {t.id for t in node.targets if isinstance(t, ast.Name)}
    return found


def _renamed(source: str, names: Mapping[str, str]) -> str:
    lines = source.splitlines(keepends=True)
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    for before, token in reversed(list(zip([None, *tokens], tokens, strict=False))):
        attribute = before is not None and before.string == "."
        if token.type == tokenize.NAME and token.string in names and not attribute:
            row, start = token.start
            line = lines[row - 1]
            lines[row - 1] = line[:start] + names[token.string] + line[token.end[1] :]
    return re.sub(r"\n{4,}", "\n\n\n", "".join(lines))
