"""The call of a `ModelNew` as text: the tables of its steps, and the lines of its `forward`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from backends.program.inplace import overwrites
from backends.program.workspace import Allocation, plan
from frontends.kernelbench.parts import Constants, KernelText, ProblemCall
from ir.dtypes import TORCH_NAMES
from ir.network import Buffer, Network, Step
from ir.sizes import value
from ir.spec import DTYPES, Expr

LEAVES = "_leaves"  # the call's arguments, flat, in the code that is written
HELD = "_held"  # the module's parameters and buffers there
# Names of `steps.py`
CHECK, FLAT = "_model_new_input", "_model_new_leaves"
_FIND, _STEPS = "_model_new_held", "_ModelNewSteps"
AGAIN = "_LaunchesAgain"  # of a backend's text: `backends.backend.Repeats`
# Names of tables
_WANTED, _NUMBERS = "_MODEL_NEW_TENSORS", "_model_new_numbers"
_CALL, _BEFORE = "_model_new_steps", "_model_new_constant_steps"
_CONSTANTS = "_constants"  # a function within `forward`
_WORDS = ("torch", "self", "args", "int", "float", "len", _CONSTANTS, LEAVES, HELD, CHECK, FLAT)

Named = tuple[str, tuple[int, ...]]  # a tensor, in the shape in which a kernel sees it


def local(name: str) -> str:
    """The variable of a buffer in `forward`; no two buffers have the same."""
    if re.fullmatch(r"(x_)*out_.*", name):  # as results are called
        return f"x_{name}"
    return f"{name}_" if name.rstrip("_") in _WORDS else name


@dataclass(frozen=True, slots=True)
class CallText:
    """A call on its way to text.

    problem: what is known without kernels.  network: its steps.  kernels: of these and of the constants', by the
    spec's name.  launches: the names of their functions `launch` in the file.
    """

    problem: ProblemCall
    network: Network
    kernels: Mapping[str, KernelText]
    launches: Mapping[str, str]
    constants: Constants | None

    def tables(self) -> Iterator[str]:
        """The tables above the class."""
        if self.problem.numbers:
            made = "".join(f"        {text},\n" for _, text in self.problem.numbers)
            yield (
                f"import functools\n\n\n@functools.cache\ndef {_NUMBERS}(device):\n"
                f'    """The numbers that the module fixes, on a device."""\n    return (\n{made}    )'
            )
        if self._holds:
            written = self._in_place.values()
            rows = [
                f'("{h.path}", {h.dtype}, {h.shape}, {h.name in written})'
                for h in self.problem.held
            ]
            told = "# Parameters and buffers: path, dtype, shape, and whether steps write it"
            yield f"{told}\n{_WANTED} = {_tuple(rows)}"
        if self.constants:
            given = [*_read(self.constants.network), *_made(self.constants.network)]
            yield self._steps(_BEFORE, self.constants.network, given, (), {})
        held = [h.name for h in self.problem.held] if self._holds else []
        yield self._steps(_CALL, self.network, self._given, held, self._in_place)

    def forward(self) -> Iterator[str]:
        """The lines of `forward`."""
        problem, placed = self.problem, self._in_place
        yield from problem.given
        first = local(problem.first) if problem.first else "None"
        if self._holds:
            yield f"{HELD} = {_FIND}(self, {_WANTED}, {first})"
        if placed:
            yield from (f"{local(n)} = {HELD}.apart({local(n)})" for n in problem.arguments)
        if problem.numbers:
            yield f"{_row([local(n) for n, _ in problem.numbers])} = {_NUMBERS}({self._device})"
        if problem.seed is not None:
            yield f"{local(problem.seed)} = torch.randint(2**31, (1,)).to({self._device})"
        if self.constants:
            yield from self._constant_lines(self.constants)
        yield from (self._empty(b) for b in self._fresh)
        given = ", ".join(map(local, self._given))
        yield f"{_CALL}([{given}]{f', {HELD}' if self._holds else ''})"
        if placed:
            yield f"{HELD}.put_back()"
        for (output, dtype), (name, sizes) in zip(
            problem.outputs, self.network.outputs, strict=True
        ):
            if name not in placed:
                yield f"out_{output} = {self._result(name, tuple(sizes), dtype)}"
        yield from problem.after
        roots = self._roots
        yield from (
            m.line for m in problem.left if m.output is None or roots[m.output] not in placed
        )
        yield f"return {problem.result}"

    @property
    def _holds(self) -> bool:
        return bool(self.problem.held or self.constants)

    @property
    def _device(self) -> str:
        if self.problem.first:
            return f"{local(self.problem.first)}.device"
        return f"{HELD}.device" if self.problem.held else '"cpu"'

    @property
    def _roots(self) -> dict[str, str]:
        """The buffers of the spec's outputs."""
        pairs = zip(self.problem.outputs, self.network.outputs, strict=True)
        return {output: root for (output, _), (root, _) in pairs}

    @property
    def _in_place(self) -> dict[str, str]:
        """Buffers that steps write where the module holds a tensor that the call replaces by them, and its input."""
        roots, dtypes = self._roots, dict(self.problem.outputs)
        held = {h.name: h for h in self.problem.held}
        found: dict[str, str] = {}
        for m in self.problem.left:
            if m.output is None or m.held is None:
                continue
            root, over = roots[m.output], held[m.held]
            buffer = self.network.buffer(root)
            fits = prod(over.shape) == prod(buffer.shape)
            fits = fits and over.dtype == dtypes[m.output] == _dtype(buffer.dtype)
            alone = list(roots.values()).count(root) == 1 and m.held not in found.values()
            if fits and alone and overwrites(self.network, root, m.held):
                found[root] = m.held
        return found

    @property
    def _fresh(self) -> list[Buffer]:
        """Buffers that each call makes anew."""
        return [self.network.buffer(n) for n in _made(self.network) if n not in self._in_place]

    @property
    def _given(self) -> list[str]:
        """The buffers that each call gives its steps."""
        held = {h.name for h in self.problem.held}
        return [n for n in _read(self.network) if n not in held] + [b.name for b in self._fresh]

    def _constant_lines(self, constants: Constants) -> Iterator[str]:
        """The lines that name the constants: computed where they were not, or do not hold any more."""
        own, names = constants.network, _row([local(n) for n in constants.names])
        read = _read(own)
        numbers = [n for n, h in enumerate(self.problem.held) if h.name in read]
        yield ""
        yield f"def {_CONSTANTS}():"
        yield from (f"    {self._empty(own.buffer(n))}" for n in _made(own))
        given = ", ".join(self._tensor(n) for n in (*read, *_made(own)))
        yield f"    {_BEFORE}([{given}])"
        found = [
            _seen(self._tensor(name), own.buffer(name).shape, tuple(sizes))
            for name, sizes in own.outputs
        ]
        yield f"    return {_row(found)}"
        yield ""
        yield f"{names} = {HELD}.constants({_row(numbers)}, {_CONSTANTS})"

    def _tensor(self, name: str) -> str:
        """A buffer's tensor in `forward`."""
        numbers = {h.name: n for n, h in enumerate(self.problem.held)}
        return f"{HELD}.tensors[{numbers[name]}]" if name in numbers else local(name)

    def _result(self, name: str, sizes: tuple[int, ...], dtype: str) -> str:
        buffer = self.network.buffer(name)
        found = _seen(self._tensor(name), buffer.shape, sizes)
        if name in dict(self.problem.numbers):
            found += ".clone()"  # the next call has the same
        return found if _dtype(buffer.dtype) == dtype else f"{found}.to({dtype})"

    def _empty(self, b: Buffer) -> str:
        """The line that makes a buffer."""
        return f"{local(b.name)} = torch.empty({b.shape}, dtype={_dtype(b.dtype)}, device={self._device})"

    def _steps(
        self,
        name: str,
        network: Network,
        given: Sequence[str],
        held: Sequence[str],
        in_place: Mapping[str, str],
    ) -> str:
        """The table of a network's steps."""
        whole = plan(list(self._blocks(network)))
        shapes = {b.name: b.shape for b in network.buffers}
        shapes |= {h.name: h.shape for h in self.problem.held}
        rows, inside = [], {}
        for b in network.buffers:
            if b.name in whole.offsets:
                inside[b.name] = (
                    f'"{b.name}": ({whole.offsets[b.name]}, {_dtype(b.dtype)}, {b.shape})'
                )
        for n, step in enumerate(network.steps):
            for own, dtype, shape in self._own(n, step):
                shapes[own] = shape
                inside[own] = f'"{own}": ({whole.offsets[own]}, {_dtype(dtype)}, {shape})'
            tensors = [(in_place.get(t, t), shape) for t, shape in self._tensors(n, step)]
            seen = (f'"{t}"' if shapes[t] == s else f'("{t}", {s})' for t, s in tensors)
            rows.append(f"({', '.join([self.launches[step.spec.name], *seen])})")
        return (
            f"{name} = {_STEPS}(\n    {AGAIN},\n"
            f"    given={_names(given)},\n    held={_names(held)},\n    memory={whole.bytes},\n"
            f"    inside={_lines('{', inside.values(), '}')},\n    steps={_lines('(', rows, ')')},\n)"
        )

    def _tensors(self, n: int, step: Step) -> Iterator[Named]:
        """What the `launch` of a step is given, in order."""
        for t, name in zip(step.spec.inputs, step.inputs, strict=True):
            yield name, _numbers(t.memory)
        yield from ((own, shape) for own, _, shape in self._own(n, step))
        for t, name in zip(step.spec.outputs, step.outputs, strict=True):
            yield name, _numbers(t.memory)

    def _own(self, n: int, step: Step) -> Iterator[tuple[str, str, tuple[int, ...]]]:
        """What a step's kernel needs for itself: name, dtype and shape."""
        for p in self.kernels[step.spec.name].workspace:
            yield f"{n}.{p.name}", p.dtype, _numbers(p.shape)  # no buffer's name has a point

    def _blocks(self, network: Network) -> Iterator[Allocation]:
        """The tensors in the memory of a call."""
        lives: dict[str, tuple[int, int]] = {}
        for n, step in enumerate(network.steps):
            for name in (*step.inputs, *step.outputs):
                lives[name] = (lives.get(name, (n, n))[0], n)
            for own, dtype, shape in self._own(n, step):
                yield Allocation(own, DTYPES[dtype] * prod(shape), n, n)
        for b in network.buffers:
            if b.role == "between" and b.name in lives:
                yield Allocation(b.name, DTYPES[b.dtype] * prod(b.shape), *lives[b.name])


def _read(network: Network) -> list[str]:
    """The inputs that steps or results read."""
    read = {name for step in network.steps for name in step.inputs}
    return [b.name for b in network.inputs if b.name in read]


def _made(network: Network) -> list[str]:
    """The results that steps write."""
    written = {name for step in network.steps for name in step.outputs}
    return [b.name for b in network.buffers if b.role == "output" and b.name in written]


def _numbers(shape: Sequence[Expr]) -> tuple[int, ...]:
    return tuple(value(e, {}) for e in shape)


def _dtype(name: str) -> str:
    return f"torch.{TORCH_NAMES[name]}"


def _seen(tensor: str, held: Sequence[Any], wanted: tuple[int, ...]) -> str:
    """A tensor of shape `held`, as one of shape `wanted`."""
    return tensor if tuple(held) == wanted else f"{tensor}.reshape({wanted})"


def _row(values: Sequence[object]) -> str:
    """Values as a tuple in one line."""
    return f"({', '.join(map(str, values))}{',' * (len(values) == 1)})"


def _names(names: Sequence[str]) -> str:
    """Names as a tuple, a few in each line."""
    texts = [f'"{name}"' for name in names]
    if len(row := _row(texts)) <= 80:
        return row
    return _lines("(", [", ".join(texts[n : n + 4]) for n in range(0, len(texts), 4)], ")")


def _lines(start: str, rows: Any, end: str) -> str:
    """Rows between brackets, a line each."""
    return start + "".join(f"\n        {row}," for row in rows) + (f"\n    {end}" if rows else end)


def _tuple(rows: Sequence[str]) -> str:
    return "(" + "".join(f"\n    {row}," for row in rows) + ("\n)" if rows else ")")
