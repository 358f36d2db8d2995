"""Correctness, the same for every backend: a kernel's outputs against float64's."""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod
from typing import Protocol

import numpy as np

from backends.backend import Arrays, BackendError, Built, Sizes
from backends.tolerance import FEW, FINITE, LARGEST, allowance, norm_ratio, rms, spacing, tolerance
from ir.machine import Machine
from ir.nest.nest import LoopNest
from ir.reference.draws import DENORMAL, INFINITE, NAN, POSITIVE, drawn, draws, flushed
from ir.reference.inputs import random_inputs
from ir.reference.reference import evaluate, evaluate_storage, storage_dtype
from ir.reference.rounding import round_to
from ir.reference.rows import rows
from ir.sizes import bind, shape
from ir.spec import FLOATS, Apply, Spec

CACHED_BYTES = 1 << 28  # of references kept: the check shapes of a kernel, at two seeds each
OTHER = 1  # added to a seed for the second set of inputs
# The draws that are made where inputs are more numbers: each takes seconds there.
AFFORDABLE = ("large", "tiny", "shifted", "zero_rows", "ends", "whole")
DRAWN = 1 << 15  # numbers that the inputs of other draws have at most, where a check has so few
NOISY = 5  # runs of plain arithmetic with other roundings
SELECTIONS = ("where",)  # functions that leave values out


@dataclass(frozen=True, slots=True)
class Reference:
    """What is known of a spec at some sizes and a seed. No array is ever changed."""

    inputs: Arrays
    exact: Arrays  # in float64 (integers exact)
    storage: Arrays  # plain arithmetic in the spec's own formats
    # For inputs of the other draws, and for outputs of few elements, of which one run says little:
    # the same under other roundings that are as good
    noisy: tuple[Arrays, ...] = ()
    draw: str = ""  # one of `draws`; empty: the normal one
    # For outputs that are too expensive to compute whole: the positions on the first axis that the
    # arrays hold
    rows: Mapping[str, np.ndarray] = field(default_factory=dict)
    lengths: Mapping[str, int] = field(default_factory=dict)  # of that axis, by output

    def shape(self, name: str) -> tuple[int, ...]:
        """An output's, all of it."""
        known = self.storage[name].shape
        return (self.lengths[name], *known[1:]) if name in self.rows else known

    def known(self, name: str, output: np.ndarray) -> np.ndarray:
        """The part of an output that is compared."""
        return output[self.rows[name]] if name in self.rows else output

    def place(self, name: str, at: Sequence[int]) -> tuple[int, ...]:
        """Where in the whole output a position of that part lies."""
        return (int(self.rows[name][at[0]]), *at[1:]) if name in self.rows else tuple(at)

    @property
    def bytes(self) -> int:
        """What its arrays take."""
        groups = (self.inputs, self.exact, self.storage, *self.noisy)
        return sum(array.nbytes for group in groups for array in group.values())


class Runs(Protocol):
    """What runs a kernel: a backend, or one that takes turns with others."""

    def run(
        self, built: Built, nest: LoopNest, machine: Machine, sizes: Sizes, inputs: Arrays
    ) -> dict[str, np.ndarray]: ...


@dataclass(frozen=True, slots=True)
class Check:
    """A kernel that passed at some sizes."""

    sizes: Sizes
    rel_err: float  # norm of the difference over the norm of float64's, of the worst output
    reference_rel_err: float  # the same for plain arithmetic
    # The largest difference of one element, over the root mean square of its output. Integers and
    # b8 are equal, so add 0.
    max_err: float
    # Whether two runs gave the same bits. A kernel with atomic adds of floats need not: its two runs
    # were both right within the tolerance, and integers and b8 were equal.
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

    @contextmanager
    def unlimited(self) -> Iterator[None]:
        """Nothing is dropped meanwhile, and the limit grows by what is added."""
        self.most, before = sys.maxsize, self.most
        had = self.bytes
        try:
            yield
        finally:
            self.most = before + self.bytes - had

    def get(self, spec: Spec, sizes: Sizes, seed: int, draw: str = "") -> Reference:
        """The reference for the inputs that a seed draws: a pure function of its arguments."""
        key = (spec, tuple(sorted(sizes.items())), seed, draw)
        if key in self.kept:
            self.kept.move_to_end(key)
            return self.kept[key]
        self.kept[key] = made = _reference(spec, sizes, seed, draw)
        self.bytes += made.bytes
        while self.bytes > self.most and len(self.kept) > 1:
            _, oldest = self.kept.popitem(last=False)
            self.bytes -= oldest.bytes
        return made


_REFERENCES = References(CACHED_BYTES)


def reference(spec: Spec, sizes: Sizes, seed: int, draw: str = "") -> Reference:
    """The reference of a spec for the inputs that a seed draws. draw: one of `draws`, else normal."""
    return _REFERENCES.get(spec, sizes, seed, draw)


def prepare(
    spec: Spec, checks: Sequence[Sizes], drawn_at: Sizes, seed: int, once: Sequence[Sizes] = ()
) -> None:
    """Computes the references of `check` at some sizes and of `check_draws` at one, so that processes
    forked afterwards share them, however large they are. once: sizes of `check_once`."""
    with _REFERENCES.unlimited():
        for sizes in checks:
            reference(spec, sizes, seed)
            reference(spec, sizes, seed + OTHER)
        for sizes in once:
            reference(spec, sizes, seed)
        for draw in _made(spec, drawn_at):
            reference(spec, drawn_at, seed, draw)


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


def check_once(
    backend: Runs,
    built: Built,
    nest: LoopNest,
    machine: Machine,
    spec: Spec,
    sizes: Sizes,
    seed: int,
) -> Check:
    """As `check` with one run: for sizes at which a run is dear, or which are compared beside
    others."""
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
    """Compares what a timed call gave for the inputs that a seed draws with the reference;
    BackendError("check") names what `check` names."""
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
    """Runs a kernel on inputs of all other draws and compares all outputs with the reference;
    BackendError("check") names the draw and what `check` names.

    Where plain arithmetic in the spec's own formats loses a value, a kernel may lose it too.
    """
    run = _Runner(backend, built, nest, machine, sizes)
    for draw in _made(spec, sizes):
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


def _made(spec: Spec, sizes: Sizes) -> tuple[str, ...]:
    """The draws that are made at some sizes. Large ones are those of a spec that has no others."""
    few = _numbers(spec, sizes) <= DRAWN
    return tuple(name for name in draws(spec) if few or name in AFFORDABLE)


def draw_sizes(spec: Spec, checks: Sequence[Sizes]) -> Sizes:
    """The check sizes at which draws are compared: the largest whose inputs are few numbers."""

    ranked = sorted(checks, key=lambda sizes: _numbers(spec, sizes))
    return next((s for s in reversed(ranked) if _numbers(spec, s) <= DRAWN), ranked[0])


def _numbers(spec: Spec, sizes: Sizes) -> int:
    """How many numbers the inputs are."""
    bound = bind(spec, sizes)
    return sum(prod(shape(t, bound)) for t in spec.inputs)


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


def compare(spec: Spec, sizes: Sizes, name: str, got: np.ndarray, known: Reference) -> Errors:
    """How far one output is from the reference; BackendError("check") where that is too far."""
    dtype = next(t.dtype for t in spec.outputs if t.name == name)
    got, exact = known.known(name, got), known.exact[name]
    plain = [known.storage[name], *(n[name] for n in known.noisy)]
    if dtype not in FLOATS:
        free = np.any([p != exact for p in plain], axis=0) if known.draw else False
        _require_at(sizes, name, got, exact, (got == exact) | free, "they must be equal", known)
        return Errors()
    _require_format(sizes, name, got, dtype, known)
    got, exact, *plain = (a.astype(np.float64) for a in (got, exact, *plain))
    most = LARGEST[dtype]
    beyond = most if dtype in FINITE else np.inf
    whole, exact = exact, np.where(np.abs(exact) > most, np.copysign(beyond, exact), exact)
    lost = _lost(whole, exact, plain, bool(known.draw))
    if known.draw in (NAN, INFINITE, POSITIVE) and not _skips(spec):
        _require_kept(sizes, name, got, exact, plain, most, known)
    finite = np.isfinite(exact) & np.all(np.isfinite(plain), axis=0) & ~lost
    true = np.where(finite, exact, 0.0)
    errors = [np.where(finite, p, 0.0) - true for p in plain]
    error = np.max(np.abs(errors), axis=0)
    overflows = np.zeros(true.shape, bool)
    if known.draw:  # what overflows has a scale too, of which other sums' errors are a part
        overflows = np.isfinite(whole) & ~finite & ~lost
        true = np.where(overflows, whole, true)
    limits = tolerance(dtype, storage_dtype(spec), true, true + error)
    edges = np.abs(np.clip(got, -most, most) - np.clip(whole, -most, most))
    near = np.isfinite(whole) & (edges <= limits.element + limits.relative * most)
    _require_specials(sizes, name, got, exact, plain[0], near | lost, known)
    finite &= np.isfinite(got)
    got, exact = (np.where(finite, a, 0.0) for a in (got, exact))
    off = np.abs(got - exact)
    least = spacing(dtype)
    limit = limits.element + limits.relative * np.abs(exact) + least
    rule = f"{limits.element:.3g} + {limits.relative:.3g} of its size is allowed"
    _require_at(sizes, name, got, exact, off <= limit, rule, known)
    few = off.size < FEW  # of which the mean says no more than one element does
    if rms(off) > limits.rmse + least and not few:
        raise _fault(
            sizes,
            f"output `{name}` has a root mean square error of {rms(off):.4g}; "
            f"{limits.rmse:.4g} is allowed (plain {storage_dtype(spec)} arithmetic gives "
            f"{rms(error):.4g})",
        )
    if not overflows.any():  # else what is finite is small only as large terms cancel
        kept = [np.where(finite, e, 0.0) for e in errors]
        for why in allowance(dtype, storage_dtype(spec), got, exact, kept):
            raise _fault(sizes, f"output `{name}` {why}")
    largest = float(np.max(off, initial=0.0)) / (rms(exact) or 1.0)
    return Errors(norm_ratio(off, exact), norm_ratio(error * finite, exact), largest)


def _lost(
    whole: np.ndarray, exact: np.ndarray, plain: Sequence[np.ndarray], drawn: bool
) -> np.ndarray:
    """Where plain arithmetic has no finite result though float64 has one that the format holds, or,
    of inputs that are not normally drawn, though float64 has none either. whole: float64's result
    before the format cut it to `exact`."""
    overflow = np.isfinite(whole) & ~np.isfinite(exact)
    same = overflow & np.all([p == exact for p in plain], axis=0)
    known = np.isfinite(whole) | drawn
    return known & ~np.all(np.isfinite(plain), axis=0) & ~same


def _reference(spec: Spec, sizes: Sizes, seed: int, draw: str = "") -> Reference:
    rng = np.random.default_rng([seed, *draw.encode()] if draw else seed)
    inputs = drawn(spec, sizes, rng, draw) if draw else random_inputs(spec, sizes, rng)
    some = rows(spec, sizes, seed)
    exact = evaluate(spec, inputs, sizes, some)
    lengths = {name: len(exact[name]) for name in some.outputs}

    def taken(outputs: Arrays) -> Arrays:
        at = some.outputs
        return {name: a[at[name]] if name in at else a for name, a in outputs.items()}

    def plain(noise: np.random.Generator | None) -> Arrays:
        return taken(evaluate_storage(spec, inputs, sizes, some, noise))

    few = any(t.dtype in FLOATS and exact[t.name].size < FEW for t in spec.outputs)
    noisy = [plain(rng) for _ in range(NOISY if draw or few else 0)]
    if draw == DENORMAL:  # a unit may take such a number for 0
        noisy.append(taken(evaluate_storage(spec, flushed(inputs), sizes, some)))
    return Reference(inputs, taken(exact), plain(None), tuple(noisy), draw, some.outputs, lengths)


def _skips(spec: Spec) -> bool:
    """Whether a kernel may leave out what the equations select away, be it not a number."""
    nodes = (n for e in spec.equations for n in e.value.walk())
    return any(isinstance(n, Apply) and n.function in SELECTIONS for n in nodes)


def _require_kept(
    sizes: Sizes,
    name: str,
    got: np.ndarray,
    exact: np.ndarray,
    plain: Sequence[np.ndarray],
    most: float,
    known: Reference,
) -> None:
    """What is NaN, or infinite, by float64 and by plain arithmetic is that here too. What inputs that
    are infinite make NaN may be the limit of a function instead."""
    if known.draw == NAN:
        special = np.all(np.isnan([exact, *plain]), axis=0)
        kept = np.isnan(got)
    else:
        special = np.all(np.isinf([exact, *plain]), axis=0)
        kept = ~(np.abs(got) < most)  # the largest number of a format stands for infinity
    _require_at(sizes, name, got, exact, ~special | kept, "it must not be finite", known)


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


def _require_format(sizes: Sizes, name: str, got: np.ndarray, dtype: str, known: Reference) -> None:
    """A format that is held in a wider one has no bits that it should not have."""
    held = round_to(got, dtype)
    good = (held == got) | (np.isnan(held) & np.isnan(got))
    _require_at(sizes, name, got, held, good, f"it must be a number of {dtype}", known)


def _require_specials(
    sizes: Sizes,
    name: str,
    got: np.ndarray,
    exact: np.ndarray,
    storage: np.ndarray,
    free: np.ndarray,
    known: Reference,
) -> None:
    """Not a number where the reference says so and only there; infinite where it or plain
    arithmetic is. free: where infinity is as near as a number, or anything goes."""
    both_nan = np.isnan(got) & np.isnan(exact)
    both_finite = np.isfinite(got) & np.isfinite(exact)
    infinite = np.isinf(got) & ((got == exact) | (got == storage))
    why = "not written, or computed from what was not"
    good = both_nan | both_finite | infinite | free
    _require_at(sizes, name, got, exact, good, why, known)


def _floats(spec: Spec) -> tuple[str, ...]:
    return tuple(t.name for t in spec.outputs if t.dtype in FLOATS)


def _require_equal(sizes: Sizes, first: Arrays, second: Arrays, free: tuple[str, ...] = ()) -> None:
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
    sizes: Sizes,
    name: str,
    got: np.ndarray,
    exact: np.ndarray,
    good: np.ndarray,
    rule: str,
    known: Reference,
) -> None:
    """Every position is good; else the fault names the first one that is not."""
    if good.all():
        return
    at = np.unravel_index(int(np.argmin(good)), good.shape)
    position = ", ".join(str(int(i)) for i in known.place(name, at))
    compared = "compared elements" if name in known.rows else "elements"
    raise _fault(
        sizes,
        f"output `{name}`{list(known.shape(name))} at [{position}] is {got[at]!s}, expected "
        f"{exact[at]!s}; {rule}; {int((~good).sum())} of {good.size} {compared} are off",
    )


def _same_bits(one: np.ndarray, other: np.ndarray) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    flat = (np.ascontiguousarray(a).reshape(-1).view(np.uint8) for a in (one, other))
    return np.array_equal(*flat)


def _fault(sizes: Sizes, what: str) -> BackendError:
    shape = ", ".join(f"{name}={size}" for name, size in sizes.items())
    return BackendError("check", f"at {shape}: {what}" if shape else what)
