"""A solution of KernelBench under construction: all of its file but the kernels. It needs no torch."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ir.dtypes import TORCH_NAMES
from ir.errors import KernelError
from ir.network import Buffer, Network, Step
from ir.sizes import value
from ir.spec import Tensor

LEAVES = "_leaves"  # the call's arguments, flat, in the code that is written
CHECK = "_model_new_input"  # the function there that refuses what the kernels are not built for
_CHECK_TEXT = f'''
def {CHECK}(name, tensor, dtype, shape, like):
    """A tensor in row-major order; an error where the kernels are not built for it."""
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"`{{name}}` is {{type(tensor).__name__}}; allowed: a tensor")
    if tensor.dtype != dtype or tensor.shape != shape:
        raise ValueError(
            f"`{{name}}` is {{tensor.dtype}}{{list(tensor.shape)}}; allowed: {{dtype}}{{list(shape)}}"
        )
    if like is not None and tensor.device != like.device:
        raise ValueError(f"`{{name}}` is on {{tensor.device}}; allowed: {{like.device}}, as the first input")
    if tensor.requires_grad and torch.is_grad_enabled():
        raise ValueError(
            f"`{{name}}` requires gradients, and the kernels compute none; call it under torch.no_grad()"
        )
    return tensor.contiguous()
'''
KEPT = "_model_new_kept"  # the function there that tells whether constants still hold
_MADE = "_model_new_constants"  # the attribute of a `ModelNew` that has them
_KEPT_TEXT = f'''
def {KEPT}(module, tensors):
    """Whether the module's constants were computed from these tensors, as they are now."""
    now = [(t, None if t.is_inference() else t._version, t.detach()) for t in tensors]
    before = module.__dict__.get("{KEPT}", ())
    module.__dict__["{KEPT}"] = now  # `detach` keeps the memory, so that no other tensor gets it
    return len(before) == len(now) and all(
        a is b and v is not None and v == w and x.data_ptr() == y.data_ptr()
        for (a, v, x), (b, w, y) in zip(before, now)
    )
'''
_WORDS = frozenset(
    ("torch", "self", "args", "int", "float", "len", LEAVES, CHECK, KEPT)
)  # what `forward` uses


def local(name: str) -> str:
    """The variable of a buffer in `forward`; no two buffers have the same."""
    if re.fullmatch(r"(x_)*out_.*", name):  # as results are called
        return f"x_{name}"
    return f"{name}_" if name.rstrip("_") in _WORDS else name


@dataclass(frozen=True, slots=True)
class Constants:
    """What is computed from a module's parameters alone, once and when these have changed."""

    network: Network  # its outputs are inputs of the calls' network
    names: tuple[str, ...]  # of these inputs, in the order of the outputs
    sources: Mapping[str, str]  # of its kernels, by the spec's name


@dataclass(frozen=True, slots=True)
class Solution:
    """What a problem says of its `ModelNew`, as code."""

    # The problem's own text, from which `ModelNew` has its parameters, drawn in the same order.
    source: str
    given: tuple[str, ...]  # lines that name the network's inputs
    outputs: tuple[tuple[str, str], ...]  # of the spec in order, name and PyTorch's dtype
    after: tuple[str, ...]  # lines below those that name `out_NAME` for each output
    result: str  # what is returned
    held: tuple[str, ...] = ()  # inputs that are parameters and buffers of the module

    def text(
        self, network: Network, sources: Mapping[str, str], constants: Constants | None = None
    ) -> str:
        """The file's text.

        network: of the problem's spec, inputs and outputs in the spec's order of names.  sources: of
        the network's kernels, by the spec's name. Each defines a function of that name that takes the
        spec's inputs as contiguous tensors and returns its outputs, a tuple if several; KernelError
        where one does not.  constants: compute some inputs of the network; a kernel of both networks
        has the source of `sources`.
        """
        before = self._constants(network, constants) if constants else ()
        lines = [*self.given, *before, *_calls(network), *self._shaped(network), *self.after]
        body = "\n".join(f"        {line}" for line in [*lines, f"return {self.result}"])
        given = {k.name: sources[k.name] for k in network.kernels()}
        if constants:
            more = (k.name for k in constants.network.kernels())
            given = {n: constants.sources[n] for n in more if n not in given} | given
        kernels = "\n\n\n".join(_apart(given, _names(self.source)))
        return f"""{self.source.rstrip()}


{kernels}

{_CHECK_TEXT}{_KEPT_TEXT if constants else ""}

class ModelNew(Model):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.requires_grad_(False)  # the kernels compute no gradients

    def forward(self, *args):
        {LEAVES} = torch.utils._pytree.tree_leaves(args)
{body}
"""

    def _constants(self, network: Network, constants: Constants) -> Iterator[str]:
        """The lines that name the constants: computed where they were not, or do not hold any more."""
        own, names = constants.network, tuple(map(local, constants.names))
        read = {name for step in own.steps for name in step.inputs}
        of = ", ".join(local(name) for name in self.held if name in read)
        yield f"if not {KEPT}(self, [{of}]):"
        for line in _calls(own):
            yield f"    {line}"
        for name, (buffer, sizes) in zip(names, own.outputs, strict=True):
            if (value := _seen(buffer, own.buffer(buffer).shape, tuple(sizes))) != name:
                yield f"    {name} = {value}"
        yield f"    self.{_MADE} = ({', '.join(names)},)"
        yield f"({', '.join(names)},) = self.{_MADE}"

    def _shaped(self, network: Network) -> Iterator[str]:
        for (output, dtype), (name, sizes) in zip(self.outputs, network.outputs, strict=True):
            value = _seen(name, network.buffer(name).shape, tuple(sizes))
            yield f"out_{output} = {value}.to({dtype})"


def _calls(network: Network) -> Iterator[str]:
    """The steps; memory between them is given back after it was last read."""
    last = {name: n for n, s in enumerate(network.steps) for name in (*s.outputs, *s.inputs)}
    given_back = {name for name, _ in network.outputs}
    made: set[str] = set()  # of buffers that steps store parts of
    for n, step in enumerate(network.steps):
        for t, name in zip(step.spec.outputs, step.outputs, strict=True):
            if t.part is not None and name not in made:
                made.add(name)
                yield _empty(network.buffer(name), local(step.inputs[0]))
        yield from _call(network, step)
        done = [b.name for b in network.buffers if b.role == "between" and last.get(b.name) == n]
        if free := [local(name) for name in done if name not in given_back]:
            yield f"del {', '.join(free)}"


def _call(network: Network, step: Step) -> Iterator[str]:
    """The lines of a step. Its kernel may see its tensors in other shapes than their buffers have."""
    made = tuple(zip(step.spec.outputs, step.outputs, strict=True))
    parts = ((t, name) for t, name in made if t.part is not None)
    given = ", ".join(
        _seen(name, network.buffer(name).shape, _memory(t))
        for t, name in (*zip(step.spec.inputs, step.inputs, strict=True), *parts)
    )
    yield f"{', '.join(map(local, step.outputs))} = {step.spec.name}({given})"
    for t, name in made:
        if (value := _seen(name, _memory(t), network.buffer(name).shape)) != local(name):
            yield f"{local(name)} = {value}"


def _memory(t: Tensor) -> tuple[int, ...]:
    """The shape of what a kernel takes or gives for a tensor."""
    return tuple(value(e, {}) for e in t.memory)


def _empty(b: Buffer, like: str) -> str:
    """The line that makes a buffer. like: a tensor of its device."""
    dtype = f"torch.{TORCH_NAMES[b.dtype]}"
    return f"{local(b.name)} = torch.empty({b.shape}, dtype={dtype}, device={like}.device)"


def _seen(name: str, held: Sequence[Any], wanted: tuple[int, ...]) -> str:
    """A buffer's variable, of shape `held`, as a tensor of shape `wanted`."""
    return local(name) if tuple(held) == wanted else f"{local(name)}.reshape({wanted})"


def _apart(sources: Mapping[str, str], others: set[str]) -> list[str]:
    """Sources side by side: a name that several define, as `launch`, is made each's own; a function
    that they define alike stands in the first alone.

    others: names that the rest of the file defines.
    """
    defined = {entry: _names(source) for entry, source in sources.items()}
    alike = _alike(sources, others)
    taken = Counter(name for names in (*defined.values(), others) for name in names)
    made: list[str] = []
    there: set[str] = set()
    for entry, source in sources.items():
        if entry not in defined[entry]:
            raise KernelError(f"the source of `{entry}` defines no function of that name")
        own = {n: f"{n}_{entry}" for n in defined[entry] - alike if taken[n] > 1 and n != entry}
        made.append(_renamed(_without(source, alike & there), own).strip())
        there |= alike & defined[entry]
    return made


def _alike(sources: Mapping[str, str], others: set[str]) -> set[str]:
    """Functions that several sources define, all alike, and that use nothing else a source defines."""
    defined = Counter(name for source in sources.values() for name in _names(source))
    found: Counter[tuple[str, str]] = Counter()
    for source in sources.values():
        names = _names(source)
        for node in ast.parse(source).body:
            if isinstance(node, ast.FunctionDef):
                used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
                found[node.name, ast.dump(node)] += not used & (names - {node.name})
    apart = {*others, *sources}
    return {n for (n, _), count in found.items() if count == defined[n] > 1 and n not in apart}


def _without(source: str, names: set[str]) -> str:
    """A source without some of its functions."""
    lines = source.splitlines(keepends=True)
    for node in reversed(ast.parse(source).body):
        if isinstance(node, ast.FunctionDef) and node.name in names:
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            del lines[first - 1 : node.end_lineno]
    return "".join(lines)


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
