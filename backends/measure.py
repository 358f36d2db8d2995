"""Correctness, the same for every backend: a kernel's outputs against float64's."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from backends.backend import Arrays, BackendError, Built, Sizes
from backends.tolerance import FINITE, LARGEST, norm_ratio, rms, tolerance
from ir.machine import Machine
from ir.nest.nest import LoopNest
from ir.reference.inputs import random_inputs
from ir.reference.reference import evaluate, evaluate_storage, storage_dtype
from ir.reference.rounding import round_to
from ir.reference.rows import rows
from ir.spec import FLOATS, Spec

CACHED_BYTES = 1 << 28  # of references kept: the check shapes of a kernel, at two seeds each
OTHER = 1  # added to a seed for the second set of inputs


@dataclass(frozen=True, slots=True)
class Reference:
    """What is known of a spec at some sizes and a seed. exact: in float64 (integers exact).
    storage: plain arithmetic in the spec's own formats. None of the arrays is ever changed.

    rows: of outputs that are too dear to compute whole, the positions on the first axis that `exact`
    and `storage` hold.  lengths: of that axis.
    """

    inputs: Arrays
    exact: Arrays
    storage: Arrays
    rows: Mapping[str, np.ndarray] = field(default_factory=dict)
    lengths: Mapping[str, int] = field(default_factory=dict)

    def shape(self, name: str) -> tuple[int, ...]:
        """An output's, all of it."""
        known = self.storage[name].shape
        return (self.lengths[name], *known[1:]) if name in self.rows else known

    def known(self, name: str, output: np.ndarray) -> np.ndarray:
        """The part of an output that is compared."""
        return output[self.rows[name]] if name in self.rows else output

    @property
    def bytes(self) -> int:
        """What its arrays take."""
        groups = (self.inputs, self.exact, self.storage)
        return sum(array.nbytes for group in groups for array in group.values())


class Runs(Protocol):
    """What runs a kernel: a backend, or one that takes turns with others."""

    def run(
        self, built: Built, nest: LoopNest, machine: Machine, sizes: Sizes, inputs: Arrays
    ) -> dict[str, np.ndarray]: ...


@dataclass(frozen=True, slots=True)
class Check:
    """A kernel that passed at some sizes.

    rel_err: norm of the difference over the norm of float64's, of the worst output.
    reference_rel_err: the same for plain arithmetic.  max_err: the largest difference of one
    element, over the root mean square of its output.  Integers and b8 are equal, so add 0.
    repeated: whether it was seen to give the same bits twice. A kernel that adds floats to memory
    in whatever order they come does not have to, so this is False of it: two of its runs on the
    same inputs were both right, to the tolerance; integers and b8 were the same twice even so.
    """

    sizes: Sizes
    rel_err: float
    reference_rel_err: float
    max_err: float
    repeated: bool


@dataclass(frozen=True, slots=True)
class Errors:
    """How far one output is off: see `Check` for the units."""

    rel_err: float = 0.0
    reference_rel_err: float = 0.0
    max_err: float = 0.0


class References:
    """The last references that were asked for, `most` bytes of them and always the newest."""

    def __init__(self, most: int):
        self.most = most
        self.bytes = 0
        self.kept: OrderedDict[tuple, Reference] = OrderedDict()

    def get(self, spec: Spec, sizes: Sizes, seed: int) -> Reference:
        """The reference for the inputs that a seed draws: a pure function of its arguments."""
        key = (spec, tuple(sorted(sizes.items())), seed)
        if key in self.kept:
            self.kept.move_to_end(key)
            return self.kept[key]
        self.kept[key] = made = _reference(spec, sizes, seed)
        self.bytes += made.bytes
        while self.bytes > self.most and len(self.kept) > 1:
            _, oldest = self.kept.popitem(last=False)
            self.bytes -= oldest.bytes
        return made


_REFERENCES = References(CACHED_BYTES)


def reference(spec: Spec, sizes: Sizes, seed: int) -> Reference:
    """The reference of a spec for the inputs that a seed draws."""
    return _REFERENCES.get(spec, sizes, seed)


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

    spec: what must be computed, whatever the nest says that it does.  sizes: the free ones.
    repeat: run twice on the first inputs and demand equal bits, but see `Check.repeated`.  Raises
    BackendError("check") with output, shape, first offending position, what came and what was expected.
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


@dataclass(frozen=True, slots=True)
class _Runner:
    """Runs one kernel; every run has its own copy of the inputs."""

    backend: Runs
    built: Built
    nest: LoopNest
    machine: Machine
    sizes: Sizes

    def __call__(self, known: Reference) -> dict[str, np.ndarray]:
        given = {name: a.copy() for name, a in known.inputs.items()}
        got = self.backend.run(self.built, self.nest, self.machine, self.sizes, given)
        for name, array in known.inputs.items():
            if not _same_bits(given[name], array):
                raise _fault(self.sizes, f"the kernel changed its input `{name}`")
        for name, expected in known.storage.items():
            _require_form(self.sizes, name, got.get(name), known.shape(name), expected.dtype)
        return {name: got[name] for name in known.storage}


def compare(
    spec: Spec, sizes: Sizes, name: str, got: np.ndarray, known: Reference
) -> Errors:
    """How far one output is from the reference; BackendError("check") where that is too far."""
    dtype = next(t.dtype for t in spec.outputs if t.name == name)
    got, exact, storage = known.known(name, got), known.exact[name], known.storage[name]
    if dtype not in FLOATS:
        _require_at(sizes, name, got, exact, got == exact, "they must be equal")
        return Errors()
    _require_format(sizes, name, got, dtype)
    got, exact, storage = (a.astype(np.float64) for a in (got, exact, storage))
    beyond = LARGEST[dtype] if dtype in FINITE else np.inf
    exact = np.where(np.abs(exact) > LARGEST[dtype], np.copysign(beyond, exact), exact)
    _require_specials(sizes, name, got, exact, storage)
    finite = np.isfinite(got) & np.isfinite(exact) & np.isfinite(storage)
    got, exact, storage = (np.where(finite, a, 0.0) for a in (got, exact, storage))
    precision = storage_dtype(spec)
    limits = tolerance(dtype, precision, exact, storage)
    off = np.abs(got - exact)
    limit = limits.element + limits.relative * np.abs(exact)
    rule = f"{limits.element:.3g} + {limits.relative:.3g} of its size is allowed"
    _require_at(sizes, name, got, exact, off <= limit, rule)
    if rms(off) > limits.rmse:
        raise _fault(
            sizes,
            f"output `{name}` has a root mean square error of {rms(off):.4g}; "
            f"{limits.rmse:.4g} is allowed (plain {precision} arithmetic gives "
            f"{rms(storage - exact):.4g})",
        )
    largest = float(np.max(off, initial=0.0)) / (rms(exact) or 1.0)
    return Errors(norm_ratio(off, exact), norm_ratio(storage - exact, exact), largest)


def _reference(spec: Spec, sizes: Sizes, seed: int) -> Reference:
    inputs = random_inputs(spec, sizes, np.random.default_rng(seed))
    some = rows(spec, sizes, seed)

    exact = evaluate(spec, inputs, sizes, some)
    storage = evaluate_storage(spec, inputs, sizes, some)

    def taken(outputs: Arrays) -> Arrays:
        at = some.outputs
        return {name: a[at[name]] if name in at else a for name, a in outputs.items()}

    lengths = {name: len(exact[name]) for name in some.outputs}
    return Reference(inputs, taken(exact), taken(storage), some.outputs, lengths)


def _require_form(
    sizes: Sizes,
    name: str,
    got: np.ndarray | None,
    expected: tuple[int, ...],
    dtype: np.dtype,
) -> None:
    if got is None:
        raise _fault(sizes, f"there is no output `{name}`")
    if got.shape != expected or got.dtype != dtype:
        raise _fault(
            sizes,
            f"output `{name}` is {got.dtype}{list(got.shape)}, expected {dtype}{list(expected)}",
        )


def _require_format(sizes: Sizes, name: str, got: np.ndarray, dtype: str) -> None:
    """A format that is held in a wider one has no bits that it should not have."""
    held = round_to(got, dtype)
    good = (held == got) | (np.isnan(held) & np.isnan(got))
    _require_at(sizes, name, got, held, good, f"it must be a number of {dtype}")


def _require_specials(
    sizes: Sizes, name: str, got: np.ndarray, exact: np.ndarray, storage: np.ndarray
) -> None:
    """Not a number where the reference says so and only there; infinite where it or plain
    arithmetic is."""
    both_nan = np.isnan(got) & np.isnan(exact)
    both_finite = np.isfinite(got) & np.isfinite(exact)
    infinite = np.isinf(got) & ((got == exact) | (got == storage))
    why = "not written, or computed from what was not"
    _require_at(sizes, name, got, exact, both_nan | both_finite | infinite, why)


def _floats(spec: Spec) -> tuple[str, ...]:
    return tuple(t.name for t in spec.outputs if t.dtype in FLOATS)


def _require_equal(
    sizes: Sizes, first: Arrays, second: Arrays, free: tuple[str, ...] = ()
) -> None:
    """Outputs have the same bits twice; free: those that need not."""
    for name, array in first.items():
        if name not in free and not _same_bits(array, second[name]):
            raise _fault(sizes, f"output `{name}` differs between two runs on the same inputs")


def _require_motion(
    sizes: Sizes, first: tuple[Arrays, Reference], other: tuple[Arrays, Reference]
) -> None:
    """Each output has moved with the inputs, unless float64's has not either."""
    (got, known), (moved, known_other) = first, other
    for name in got:
        still = _same_bits(known.storage[name], known_other.storage[name])
        if not still and _same_bits(got[name], moved[name]):
            raise _fault(sizes, f"output `{name}` does not change when the inputs do")


def _require_at(
    sizes: Sizes, name: str, got: np.ndarray, exact: np.ndarray, good: np.ndarray, rule: str
) -> None:
    """Every position is good; else the fault names the first one that is not."""
    if good.all():
        return
    at = np.unravel_index(int(np.argmin(good)), good.shape)
    position = ", ".join(str(int(i)) for i in at)
    raise _fault(
        sizes,
        f"output `{name}`{list(got.shape)} at [{position}] is {got[at]!s}, expected "
        f"{exact[at]!s}; {rule}; {int((~good).sum())} of {good.size} elements are off",
    )


def _same_bits(one: np.ndarray, other: np.ndarray) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    flat = (np.ascontiguousarray(a).reshape(-1).view(np.uint8) for a in (one, other))
    return np.array_equal(*flat)


def _fault(sizes: Sizes, what: str) -> BackendError:
    shape = ", ".join(f"{name}={size}" for name, size in sizes.items())
    return BackendError("check", f"at {shape}: {what}" if shape else what)
