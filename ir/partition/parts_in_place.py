"""Stores the operands of a concatenation directly into its buffer, and reads them there.

before: a = conv1(x), b = conv2(x), t = cat(a, b), which reads and writes both once more
after:  t[:, :64] = conv1(x), t[:, 64:] = conv2(x)

Operands that no kernel can store so, such as inputs, are copied into the buffer. An operand can
itself be a concatenation: a dense block, whose layers read the results of all earlier layers, has
one buffer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

from ir.network import Network, Pause, Step
from ir.partition.canonical import named
from ir.partition.joins import JoinPart, joined, joined_parts
from ir.partition.slices import as_one, read_from
from ir.sizes import shape
from ir.spec import DTYPES, Equation, Number, Part, Read, Spec, Tensor

ALIGNED = 16  # bytes: alignment of operands and their rows, so that stores are vectorised
# Bytes of traffic that each additional launch must save. By its time model a launch takes an H200 8
# us, as long as reading these bytes.
LEAST = 1 << 25
FEWEST = 1 << 20  # bytes of stores to save where no launch is saved; fewer bring nothing
Items = list[Step | Pause]  # steps and pauses of a network, in order
Lowers = Callable[[Spec], bool]


def with_parts_in_place(network: Network, lowers: Lowers) -> Network:
    """Lets kernels store the operands of concatenations in place. lowers: whether a kernel can be
    lowered."""
    items: Items = [item for _, item in network.sequence()]
    from_end, changed = 1, False
    # The last concatenation comes first, as an operand can be a concatenation.
    while from_end <= len(items):
        n = len(items) - from_end
        item = items[n]
        made = None
        if isinstance(item, Step) and (join := _Join.of(item)):
            made = _InPlace(network, items, n, join, lowers).made()
        if made is None:
            from_end += 1
        else:
            items, changed = made, True
    return _network(network, items) if changed else network


def _network(network: Network, items: Items) -> Network:
    """The network with other steps and pauses; unused buffers are dropped."""
    steps = tuple(s for s in items if isinstance(s, Step))
    before = [sum(isinstance(s, Step) for s in items[:n]) for n in range(len(items))]
    pauses = tuple(
        replace(p, before=count)
        for p, count in zip(items, before, strict=True)
        if isinstance(p, Pause)
    )
    kept = {name for s in steps for name in (*s.inputs, *s.outputs)}
    kept |= {b.name for b in network.buffers if b.role != "between"}
    kept |= {name for p in pauses for name, _ in p.inputs} | {name for name, _ in network.outputs}
    buffers = tuple(b for b in network.buffers if b.name in kept)
    return replace(network, buffers=buffers, steps=steps, pauses=pauses)


@dataclass(frozen=True, slots=True)
class _Join:
    """The concatenation that a step computes from its inputs and stores."""

    step: Step
    equation: Equation
    dim: int
    parts: tuple[JoinPart, ...]

    @staticmethod
    def of(step: Step) -> _Join | None:
        """The concatenation of a step; None if it has none."""
        stored = {t.name: t for t in step.spec.outputs}
        given = {t.name: t for t in step.spec.inputs}
        for e in step.spec.equations:
            if e.target in stored and given.keys() >= set(e.sources()):
                if found := joined_parts(e, given | stored):
                    return _Join(step, e, *found)
        return None

    @property
    def target(self) -> Tensor:
        """The concatenation, as an output of the step's spec."""
        return next(t for t in self.step.spec.outputs if t.name == self.equation.target)

    @property
    def buffer(self) -> str:
        """The buffer that the concatenation is stored to."""
        return self.step.outputs[self.step.spec.outputs.index(self.target)]

    @property
    def whole(self) -> Part | None:
        """The part of the buffer that the concatenation covers.

        None if the concatenation is itself a part along another dimension.
        """
        own = self.target.part
        if own is None:
            return Part(self.dim, 0, shape(self.target, {})[self.dim])
        return own if own.axis == self.dim else None

    def place(self, part: JoinPart, tensor: Tensor, whole: Part) -> Part | None:
        """The place of an operand in the buffer, in the shape of `tensor`.

        None if its rows are not aligned, or if its shape does not contain the rows of the
        concatenation.
        """
        sizes, own = shape(self.target, {}), shape(tensor, {})
        rows, inner = prod(sizes[: self.dim]), prod(sizes[self.dim + 1 :])
        first, pitch = (whole.first + part.start) * inner, whole.whole * inner
        width = DTYPES[tensor.dtype]
        if first * width % ALIGNED or rows > 1 and pitch * width % ALIGNED:
            return None
        for axis in range(len(own)):
            each = prod(own[axis + 1 :])
            if prod(own[:axis]) == rows and not first % each and not pitch % each:
                return Part(axis, first // each, pitch // each)
        return None


class _InPlace:
    """The rewrite of one concatenation of a network."""

    def __init__(self, network: Network, items: Items, at: int, join: _Join, lowers: Lowers):
        self.network, self.items, self.at = network, items, at
        self.join, self.lowers = join, lowers
        self.buffers = {b.name: b for b in network.buffers}
        names = [t.name for t in join.step.spec.inputs]
        # by input name of the concatenating spec: the buffer
        self.holds = dict(zip(names, join.step.inputs, strict=True))
        # whether the step computes something else, too
        self.rest = len(join.step.spec.equations) > 1

    def made(self) -> Items | None:
        """The rewritten items; None if that does not pay."""
        whole = self.join.whole
        if whole is None:
            return None
        items = list(self.items)
        stored: list[JoinPart] = []
        for part in self.join.parts:
            if found := self._stored(items, part, whole):
                items, stored = found, [*stored, part]
        runs = list(_runs(self.join.parts, stored))
        copies = [self._copy(run, whole) for run in runs]
        last = self._last(whole) if self.rest else None
        if not stored or not self._gains(stored, len(copies)) or self.rest and last is None:
            return None
        if not all(self.lowers(step.spec) for step in (*copies, *([last] if last else []))):
            return None
        # If a step reads the start of the buffer before its end is stored, later steps read the
        # copies, too.
        early = any(self.join.buffer in _read(s) for s in items[: self.at])
        items[self.at : self.at + 1] = [*([] if early else copies), *([last] if last else [])]
        for run, step in zip(runs, copies, strict=True) if early else ():
            items = self._copied(items, run, step, whole)
        return items

    def _copied(self, items: Items, run: Sequence[JoinPart], copy: Step, whole: Part) -> Items:
        """Inserts a copy as early as possible.

        Steps after it that concatenate the copied operands with operands in place read them in the
        buffer.
        """
        filled = (n for n, s in enumerate(items) if set(s.outputs) & set(copy.inputs))
        first = max(filled, default=-1) + 1
        made = list(items[:first])
        for step in items[first:]:
            for part in run:
                if isinstance(step, Step) and self.join.buffer in step.inputs:
                    name = self.holds[part.tensor]
                    changed = name in step.inputs and self._reading(step, name, part, whole)
                    step = changed if changed and self.lowers(changed.spec) else step
            made.append(step)
        return [*made[:first], copy, *made[first:]]

    def _gains(self, stored: Sequence[JoinPart], copies: int) -> bool:
        """Whether the saved traffic is worth the additional launches."""
        own = sum(map(self._bytes, stored))
        left = sum(map(self._bytes, self.join.parts)) - own
        if self.rest:
            return own - left >= max(FEWEST, LEAST * copies)
        return 2 * own > LEAST * (copies - 1)

    def _bytes(self, part: JoinPart) -> int:
        b = self.buffers[self.holds[part.tensor]]
        return DTYPES[b.dtype] * prod(b.shape)

    def _stored(self, items: Items, part: JoinPart, whole: Part) -> Items | None:
        """Stores one operand in place and lets all its readers read it there; None if one of them
        cannot."""
        name = self.holds[part.tensor]
        uses = [n for n, s in enumerate(items) if name in (*s.outputs, *_read(s))]
        again = [p for p in self.join.parts if self.holds[p.tensor] == name]
        others = [e for e in self.join.step.spec.equations if part.tensor in e.sources()]
        if not self._is_between(name) or len(again) > 1 or len(others) > 1:
            return None
        made = list(items)
        for n in uses:
            step = items[n]
            if n == self.at:
                continue
            if not isinstance(step, Step):
                return None
            if name in step.outputs:
                changed = self._storing(step, name, part, whole)
            else:
                changed = self._reading(step, name, part, whole)
            if changed is None or not self.lowers(changed.spec):
                return None
            made[n] = changed
        return made

    def _is_between(self, name: str) -> bool:
        """Whether a buffer is an intermediate that exactly one step stores whole."""
        writers = [s for s in self.items if isinstance(s, Step) and name in s.outputs]
        returned = {output for output, _ in self.network.outputs}
        whole = len(writers) == 1 and _tensor(writers[0], name).part is None
        return whole and self.buffers[name].role == "between" and name not in returned

    def _storing(self, step: Step, name: str, part: JoinPart, whole: Part) -> Step | None:
        """Lets the step that computes an operand store it in place; None if it cannot."""
        tensor = _tensor(step, name)
        place = self.join.place(part, tensor, whole)
        if place is None or tensor.dtype != self.join.target.dtype:
            return None
        outputs = tuple(replace(t, part=place) if t == tensor else t for t in step.spec.outputs)
        names = tuple(self.join.buffer if o == name else o for o in step.outputs)
        return Step(_renamed(replace(step.spec, outputs=outputs)), step.inputs, names)

    def _reading(self, step: Step, name: str, part: JoinPart, whole: Part) -> Step | None:
        """Lets a step that reads an operand read it in place; None if it cannot."""
        buffer, spec = self.join.buffer, step.spec
        if step.inputs.count(name) != 1:
            return None
        tensor = spec.inputs[step.inputs.index(name)]
        place = self.join.place(part, tensor, whole)
        found = place and read_from(spec, tensor.name, place)
        if not found:
            return None
        names = [buffer if i == name else i for i in step.inputs]
        own = found.inputs[step.inputs.index(name)]
        for other, held in zip(found.inputs, names, strict=True):
            if held == buffer and other != own and replace(other, name=own.name) == own:
                del names[found.inputs.index(own)]
                found = as_one(found, other.name, own.name)
                break
        return Step(_renamed(found), tuple(names), step.outputs)

    def _copy(self, run: Sequence[JoinPart], whole: Part) -> Step:
        """The step that copies contiguous operands into the buffer."""
        spec, dim, first, e = self.join.step.spec, self.join.dim, run[0].start, self.join.equation
        parts = [replace(p, start=p.start - first, end=p.end - first) for p in run]
        value = joined(e.at, dim, parts) if len(run) > 1 else Read(run[0].tensor, e.at)
        sizes = list(self.join.target.shape)
        sizes[dim] = Number(parts[-1].end)
        place = Part(dim, whole.first + first, whole.whole)
        inputs = tuple(t for t in spec.inputs if t.name in {p.tensor for p in run})
        made = replace(
            spec,
            inputs=inputs,
            outputs=(replace(self.join.target, shape=tuple(sizes), part=place),),
            equations=(Equation(e.target, e.at, value),),
            doc=f"{self.join.target.name}.",
        )
        names = tuple(self.holds[t.name] for t in inputs)
        return Step(_renamed(made), names, (self.join.buffer,))

    def _last(self, whole: Part) -> Step | None:
        """What the step computes besides the concatenation, which it then reads from the buffer.

        None if nothing reads the concatenation, or if it cannot be read in place.
        """
        step, target = self.join.step, self.join.target
        spec, kept = step.spec, [n for n, t in enumerate(step.spec.outputs) if t != target]
        equations = tuple(e for e in spec.equations if e != self.join.equation)
        read = {s for e in equations for s in e.sources()}
        inputs = [n for n, t in enumerate(spec.inputs) if t.name in read]
        given = (*(spec.inputs[n] for n in inputs), replace(target, part=None))
        if target.name not in read:
            return None
        alone = replace(
            spec,
            inputs=given,
            outputs=tuple(spec.outputs[n] for n in kept),
            equations=equations,
            doc=f"{'_'.join(spec.outputs[n].name for n in kept)}.",
        )
        found = read_from(alone, target.name, whole)
        if found is None:
            return None
        names = (*(step.inputs[n] for n in inputs), self.join.buffer)
        return Step(_renamed(found), names, tuple(step.outputs[n] for n in kept))


def _renamed(spec: Spec) -> Spec:
    return named(spec, spec.doc.removesuffix("."))


def _tensor(step: Step, name: str) -> Tensor:
    """The output that a step stores to a buffer."""
    return step.spec.outputs[step.outputs.index(name)]


def _read(item: Step | Pause) -> tuple[str, ...]:
    if isinstance(item, Step):
        return item.inputs
    return tuple(name for name, _ in item.inputs)


def _runs(parts: Sequence[JoinPart], stored: Sequence[JoinPart]) -> Iterator[list[JoinPart]]:
    """The operands that are not stored in place, grouped into contiguous runs."""
    run: list[JoinPart] = []
    for part in parts:
        if part not in stored:
            run.append(part)
        elif run:
            yield run
            run = []
    if run:
        yield run
