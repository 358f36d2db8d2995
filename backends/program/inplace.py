"""In-place results: whether a result may overwrite an input, for example running statistics.

    y[c] = x[c] * 0.9 + m[c] * 0.1      # y over x

It may if each element is read only by the instance that stores it, and before the store: a chain of
equations at the same indices leads from the input to this result only, no later step reads the
input, and one step stores the whole result. A kernel stores each element once, in loops over the
result's own indices. Another program that computes the element redundantly may read the old or the
new value, but stores neither. In a step that scans or repeats work, all results must have one index
set.
"""

from __future__ import annotations

from ir.network import Network, Step
from ir.recurrence import recurrences
from ir.sizes import shape
from ir.spec import Equation, Index, Reduce, Scan, Spec


def overwrites(network: Network, output: str, over: str) -> bool:
    """Whether a step's output (a buffer) may share the memory of an input buffer."""
    at = next((n for n, s in enumerate(network.steps) if output in s.outputs), None)
    if at is None or any(over in s.inputs for s in network.steps[at + 1 :]):
        return False
    if network.steps[at].spec.outputs[network.steps[at].outputs.index(output)].part is not None:
        return False  # later steps store other parts of the buffer
    if any(name == over for name, _ in network.outputs):
        return False
    step = network.steps[at]
    sizes = {shape(t, {}) for t in step.spec.outputs}
    alike = len(sizes) == 1 or not _repeats(step.spec)
    return over not in step.inputs or (alike and _chained(step, output, over))


def _repeats(spec: Spec) -> bool:
    """Whether parts of a kernel run once per step of a scan, an accumulation or a recurrence."""
    scans = any(isinstance(e.value, Scan) or e.accumulate for e in spec.equations)
    return scans or bool(recurrences(spec))


def _chained(step: Step, output: str, over: str) -> bool:
    """Whether an input is read only on the way to a result, element by element."""
    inputs = [t for t, b in zip(step.spec.inputs, step.inputs, strict=True) if b == over]
    made = {b: t for t, b in zip(step.spec.outputs, step.outputs, strict=True)}[output]
    if len(inputs) != 1 or shape(inputs[0], {}) != shape(made, {}):
        return False
    others = {t.name for t in step.spec.outputs} - {made.name}
    name = inputs[0].name
    while name != made.name:
        readers = [e for e in step.spec.equations if name in e.sources()]
        if len(readers) != 1 or name in others or not _same_place(readers[0], name):
            return False
        name = readers[0].target
    return not any(name in e.sources() for e in step.spec.equations)


def _same_place(e: Equation, name: str) -> bool:
    plain = not isinstance(e.value, Reduce | Scan) and not e.accumulate
    reads = [r for r in e.reads() if r.tensor == name]
    return (
        plain
        and all(isinstance(p, Index) for p in e.at)
        and all(r.at == e.at and r.pad is None for r in reads)
    )
