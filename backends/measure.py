"""Correctness checks, the same for every backend: a kernel's outputs are compared with a float64 reference."""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Protocol

import numpy as np

from backends.backend import Arrays, BackendError, Built, LeavesInputs, Sizes
from backends.compare import Errors, Form, Reference, compare_output, fault, same_bits
from backends.parallel import on_all_cores
from backends.tolerance import FEW
from ir.machine import Machine
from ir.nest.nest import LoopNest
from ir.reference.draws import DENORMAL, draws, flushed
from ir.reference.formulas import DRAWS as FORMULAS
from ir.reference.formulas import Formulas, inputs_of, many
from ir.reference.reference import evaluate, evaluate_storage, storage_dtype
from ir.reference.rows import rows, sampled_work
from ir.sizes import bind, shape
from ir.spec import FLOATS, Apply, Spec

# Bytes of cached references: the check shapes of a kernel, at two seeds each
CACHED_BYTES = 1 << 28
OTHER = 1  # added to a seed for the second set of inputs
# The draws that are made for inputs with more than DRAWN elements, because an interpreter needs
# seconds for each.
AFFORDABLE = ("large", "tiny", "shifted", "zero_rows", "ends", "whole")
# The most elements of the inputs for which all draws are made, if a check has so few
DRAWN = 1 << 15
# Large inputs get the other draws only where runs are fast. SHARE of their references together may take as
# much work as one normal reference has. They are skipped if one takes more than SHARED_WORK iterations.
SHARE = 32
SHARED_WORK = 1 << 26
NOISY = 5  # runs of plain arithmetic with other roundings
SELECTIONS = ("where",)  # functions that discard values


class Runs(Protocol):
    """Runs a kernel: a backend, or one that shares its device with others."""

    def run(
        self, built: Built, nest: LoopNest, machine: Machine, sizes: Sizes, inputs: Arrays
    ) -> dict[str, np.ndarray]: ...


@dataclass(frozen=True, slots=True)
class Check:
    """A kernel that passed at some sizes."""

    sizes: Sizes
    rel_err: float  # norm of the error over the norm of the float64 result, for the worst output
    reference_rel_err: float  # the same for plain arithmetic
    # The largest error of one element over the root mean square of its output. Integers and b8 are
    # equal, so they add 0.
    max_err: float
    # Whether two runs had the same bits. A kernel with atomic adds of floats need not: both runs
    # were within the tolerance, and integers and b8 were equal.
    repeated: bool


class References:
    """A cache of the most recently used references, up to `most` bytes. It always keeps the newest."""

    def __init__(self, most: int):
        self.most = most
        self.bytes = 0
        self.kept: OrderedDict[tuple, Reference] = OrderedDict()

    @contextmanager
    def unlimited(self) -> Iterator[None]:
        """Inside, nothing is dropped. Afterwards the limit is larger by what was added."""
        self.most, before = sys.maxsize, self.most
        had = self.bytes
        try:
            yield
        finally:
            self.most = before + self.bytes - had

    def get(self, spec: Spec, sizes: Sizes, seed: int, draw: str = "") -> Reference:
        """The reference for the inputs of a seed. It depends on the arguments only."""
        key = _key(spec, sizes, seed, draw)
        if key not in self.kept:
            self._keep(key, _reference(spec, sizes, seed, draw))
        self.kept.move_to_end(key)
        return self.kept[key]

    def add(self, spec: Spec, wanted: Sequence[tuple[Sizes, int, str]]) -> None:
        """Adds references of a spec by sizes, seed and draw. They are computed in parallel."""
        lacking = {k: each for each in wanted if (k := _key(spec, *each)) not in self.kept}
        found = on_all_cores(lambda each: _reference(spec, *each), list(lacking.values()))
        for key, made in zip(lacking, found, strict=True):
            self._keep(key, made)

    def _keep(self, key: tuple, made: Reference) -> None:
        self.kept[key] = made
        self.bytes += made.bytes
        while self.bytes > self.most and len(self.kept) > 1:
            _, oldest = self.kept.popitem(last=False)
            self.bytes -= oldest.bytes


def _key(spec: Spec, sizes: Sizes, seed: int, draw: str) -> tuple:
    return spec, tuple(sorted(sizes.items())), seed, draw


_REFERENCES = References(CACHED_BYTES)


def reference(spec: Spec, sizes: Sizes, seed: int, draw: str = "") -> Reference:
    """The reference of a spec for the inputs of a seed. draw: one of `draws`; empty: the normal draw."""
    return _REFERENCES.get(spec, sizes, seed, draw)


def prepare(
    spec: Spec,
    checks: Sequence[Sizes],
    drawn_at: Sizes,
    seed: int,
    once: Sequence[Sizes] = (),
    all_cores: bool = False,
    arrays: bool = True,
) -> None:
    """Computes the references of `check` and of `check_draws`, so that processes forked afterwards
    share them, whatever their size.

    once: sizes of `check_once`.
    all_cores: computes several in parallel, if no other process prepares.
    arrays: whether runs need inputs as arrays instead of `Formulas`. Otherwise a device runs them,
    and more draws of large inputs are made.
    """
    wanted = [(sizes, number, "") for sizes in checks for number in (seed, seed + OTHER)]
    wanted += [(sizes, seed, "") for sizes in once]
    wanted += [(drawn_at, seed, draw) for draw in _made(spec, drawn_at, seed, not arrays)]
    with _REFERENCES.unlimited():
        if all_cores:
            _REFERENCES.add(spec, wanted)
        for sizes, number, draw in wanted:
            known = reference(spec, sizes, number, draw)
            for name in known.exact:
                if (form := _form(spec, name)).dtype in FLOATS:
                    known.usual(form, name)
            inputs = known.inputs
            if arrays and isinstance(inputs, Formulas):
                inputs.hold()


def check(
    backend: Runs,
    built: Built,
    nest: LoopNest,
    machine: Machine,
    spec: Spec,
    sizes: Sizes,
    seed: int,
    repeat: bool = True,
) -> Check:
    """Runs a kernel on fresh inputs and compares all outputs with the reference.

    spec: what must be computed, whatever the nest computes.
    sizes: the free ones.
    repeat: also runs a second time on the first inputs and requires equal bits, except as in
    `Check.repeated`. Raises BackendError("check") with the output, its shape, the first wrong
    position, and the actual and expected values.
    """
    first, other = reference(spec, sizes, seed), reference(spec, sizes, seed + OTHER)
    run = _Runner(backend, built, nest, machine, sizes)
    got = run(first)
    errors = [compare(spec, sizes, name, got[name], first) for name in got]
    ordered = not nest.unordered
    if repeat:
        again = run(first)
        _require_equal(sizes, got, again, () if ordered else _floats(spec))
        errors += [] if ordered else [compare(spec, sizes, n, again[n], first) for n in again]
    moved = run(other)
    _require_motion(sizes, (got, first), (moved, other))
    errors += [compare(spec, sizes, name, moved[name], other) for name in moved]
    return Check(
        sizes=dict(sizes),
        rel_err=max(e.rel_err for e in errors),
        reference_rel_err=max(e.reference_rel_err for e in errors),
        max_err=max(e.max_err for e in errors),
        repeated=repeat and ordered,
    )


def check_once(
    backend: Runs,
    built: Built,
    nest: LoopNest,
    machine: Machine,
    spec: Spec,
    sizes: Sizes,
    seed: int,
) -> Check:
    """The same as `check` with one run: for sizes at which a run is expensive, or that are compared
    in addition to others."""
    known = reference(spec, sizes, seed)
    got = _Runner(backend, built, nest, machine, sizes)(known)
    errors = [compare(spec, sizes, name, got[name], known) for name in got]
    return Check(
        sizes=dict(sizes),
        rel_err=max(e.rel_err for e in errors),
        reference_rel_err=max(e.reference_rel_err for e in errors),
        max_err=max(e.max_err for e in errors),
        repeated=False,
    )


def check_timed(spec: Spec, sizes: Sizes, seed: int, outputs: Arrays) -> None:
    """Compares the outputs of a timed call with the reference for the inputs of a seed.
    BackendError("check") as in `check`."""
    known = reference(spec, sizes, seed)
    try:
        for name, expected in known.storage.items():
            got = outputs.get(name)
            _require_form(sizes, name, got, known.shape(name), expected.dtype)
            compare(spec, sizes, name, outputs[name], known)
    except BackendError as error:
        raise BackendError("check", f"of a timed call, {error.reason}") from None


def check_draws(
    backend: Runs,
    built: Built,
    nest: LoopNest,
    machine: Machine,
    spec: Spec,
    sizes: Sizes,
    seed: int,
) -> None:
    """Runs a kernel on the inputs of all other draws and compares all outputs with the reference.
    BackendError("check") names the draw, and the same as in `check`.

    Where plain arithmetic in the spec's own dtypes loses a value, a kernel may lose it too.
    """
    run = _Runner(backend, built, nest, machine, sizes)
    for draw in _made(spec, sizes, seed, leaves_inputs(backend, machine)):
        known = reference(spec, sizes, seed, draw)
        try:
            got = run(known)
            for name in got:
                compare(spec, sizes, name, got[name], known)
        except BackendError as error:
            if error.stage != "check":
                raise
            kind = draw.replace("_", " ")
            raise BackendError("check", f"of the draw `{kind}`, {error.reason}") from None


def _made(spec: Spec, sizes: Sizes, seed: int, fast: bool) -> tuple[str, ...]:
    """The draws that are made at some sizes. Above DRAWN elements, only some are made. fast:
    whether a run is fast at any sizes."""
    return _made_at(spec, tuple(sorted(sizes.items())), seed, fast)


@lru_cache(maxsize=64)  # called for each candidate
def _made_at(spec: Spec, at: tuple[tuple[str, int], ...], seed: int, fast: bool) -> tuple[str, ...]:
    found, sizes = draws(spec), dict(at)
    if _numbers(spec, sizes) <= DRAWN:
        return found
    known = set(AFFORDABLE)
    if fast and sampled_work(spec, sizes, seed, SHARE) <= SHARED_WORK:
        known |= set(FORMULAS if many(spec, sizes) else found)
    return tuple(name for name in found if name in known)


def draw_sizes(spec: Spec, checks: Sequence[Sizes]) -> Sizes:
    """The check sizes at which draws are compared: the largest whose inputs have few elements."""

    ranked = sorted(checks, key=lambda sizes: _numbers(spec, sizes))
    return next((s for s in reversed(ranked) if _numbers(spec, s) <= DRAWN), ranked[0])


def _numbers(spec: Spec, sizes: Sizes) -> int:
    """The number of elements of all inputs."""
    bound = bind(spec, sizes)
    return sum(prod(shape(t, bound)) for t in spec.inputs)


def unchanging(arrays: Arrays) -> Arrays:
    """Read-only views of arrays. `Formulas` are returned unchanged, because nothing writes their arrays."""
    if isinstance(arrays, Formulas):
        return arrays
    found = {name: array.view() for name, array in arrays.items()}
    for view in found.values():
        view.flags.writeable = False
    return found


def leaves_inputs(backend: object, machine: Machine) -> bool:
    """Whether the kernels of a backend for a machine cannot modify arrays."""
    return isinstance(backend, LeavesInputs) and backend.leaves_inputs(machine)


@dataclass(frozen=True, slots=True)
class _Runner:
    """Runs one kernel. Each run gets its own copy of the inputs, unless the kernel cannot modify them."""

    backend: Runs
    built: Built
    nest: LoopNest
    machine: Machine
    sizes: Sizes

    def __call__(self, known: Reference) -> dict[str, np.ndarray]:
        given: Arrays
        if leaves_inputs(self.backend, self.machine):
            given = unchanging(known.inputs)
            got = self.backend.run(self.built, self.nest, self.machine, self.sizes, given)
        else:
            given = {name: a.copy() for name, a in known.inputs.items()}
            got = self.backend.run(self.built, self.nest, self.machine, self.sizes, given)
            for name, array in known.inputs.items():
                if not same_bits(given[name], array):
                    raise fault(self.sizes, f"the kernel changed its input `{name}`")
        for name, expected in known.storage.items():
            _require_form(self.sizes, name, got.get(name), known.shape(name), expected.dtype)
        return {name: got[name] for name in known.storage}


def _reference(spec: Spec, sizes: Sizes, seed: int, draw: str = "") -> Reference:
    inputs, rng = inputs_of(spec, sizes, seed, draw)
    small = not draw or draw in AFFORDABLE or _numbers(spec, sizes) <= DRAWN
    some = rows(spec, sizes, seed, 1 if small else SHARE, more=not draw)
    read = inputs.needed(some) if isinstance(inputs, Formulas) else inputs
    exact = evaluate(spec, read, sizes, some)

    def plain(noise: np.random.Generator | None) -> Arrays:
        return evaluate_storage(spec, read, sizes, some, noise)

    few = any(t.dtype in FLOATS and exact[t.name].size < FEW for t in spec.outputs)
    noisy = [plain(rng) for _ in range(NOISY if draw or few else 0)]
    if draw == DENORMAL:  # a device may flush such a number to 0
        noisy.append(evaluate_storage(spec, flushed(read), sizes, some))
    bound = bind(spec, sizes)
    shapes = {t.name: shape(t, bound) for t in spec.outputs if t.name in some.outputs}
    return Reference(inputs, exact, plain(None), tuple(noisy), draw, some, shapes)


def _skips(spec: Spec) -> bool:
    """Whether a kernel may skip values that the equations discard by selection, even if they are NaN."""
    nodes = (n for e in spec.equations for n in e.value.walk())
    return any(isinstance(n, Apply) and n.function in SELECTIONS for n in nodes)


def _require_form(
    sizes: Sizes,
    name: str,
    got: np.ndarray | None,
    expected: tuple[int, ...],
    dtype: np.dtype,
) -> None:
    if got is None:
        raise fault(sizes, f"there is no output `{name}`")
    if got.shape != expected or got.dtype != dtype:
        raise fault(
            sizes,
            f"output `{name}` is {got.dtype}{list(got.shape)}, expected {dtype}{list(expected)}",
        )


def compare(spec: Spec, sizes: Sizes, name: str, got: np.ndarray, known: Reference) -> Errors:
    """The errors of one output against the reference. BackendError("check") if they exceed the limits."""
    return compare_output(_form(spec, name), sizes, name, got, known)


def _form(spec: Spec, name: str) -> Form:
    """The requirements on an output."""
    dtype = next(t.dtype for t in spec.outputs if t.name == name)
    return Form(dtype, storage_dtype(spec), _skips(spec))


def _floats(spec: Spec) -> tuple[str, ...]:
    return tuple(t.name for t in spec.outputs if t.dtype in FLOATS)


def _require_equal(sizes: Sizes, first: Arrays, second: Arrays, free: tuple[str, ...] = ()) -> None:
    """Requires that outputs have the same bits in two runs. free: outputs that need not."""
    for name, array in first.items():
        if name not in free and not same_bits(array, second[name]):
            raise fault(sizes, f"output `{name}` differs between two runs on the same inputs")


def _require_motion(
    sizes: Sizes, first: tuple[Arrays, Reference], other: tuple[Arrays, Reference]
) -> None:
    """Requires that each output changed with the inputs, unless the float64 reference did not change either."""
    (got, known), (moved, known_other) = first, other
    for name in got:
        still = same_bits(known.storage[name], known_other.storage[name])
        if not still and same_bits(got[name], moved[name]):
            raise fault(sizes, f"output `{name}` does not change when the inputs do")
