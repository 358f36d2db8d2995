"""Compares one output with the float64 reference: every check of `tolerance.py`, and the position of a failure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from backends.backend import Arrays, BackendError, Held, Sizes
from backends.expected import note
from backends.tolerance import (
    FEW,
    FINITE,
    LARGEST,
    Allowance,
    Tolerance,
    allowance,
    norm_ratio,
    ratio,
    rms,
    spacing,
    tolerance,
)
from ir.reference.draws import INFINITE, NAN, POSITIVE
from ir.reference.formulas import arrays_of
from ir.reference.rounding import HELD_AS, round_to
from ir.reference.rows import WHOLE, Rows
from ir.spec import FLOATS

_OWN = ("f64", "f32", "f16")  # dtypes that numpy arrays have natively


@dataclass(frozen=True, slots=True)
class Form:
    """The requirements on an output."""

    dtype: str
    precision: str  # the narrowest float dtype of the computation
    # Whether the equations discard values by selection, so that a kernel may skip them even if they are NaN.
    selects: bool = False
    times: float = 1.0  # factor on the limits of `tolerance.py`


@dataclass(frozen=True, slots=True)
class Usual:
    """The requirements on an output that is finite in float64 and in all runs of plain arithmetic.
    `compare_output` then needs nothing else of these runs."""

    exact: np.ndarray  # float64; shares memory if it had that dtype
    size: float  # root mean square
    limits: Tolerance
    error: float  # root mean square error of plain arithmetic
    rel_err: float  # of plain arithmetic, see `Check`
    allowance: Allowance | None  # None for few elements

    @staticmethod
    def of(form: Form, exact: np.ndarray, plain: Sequence[np.ndarray]) -> Usual | None:
        """The requirements; None if a value is not finite, or is out of range of the dtype."""
        exact = np.asarray(exact, np.float64)
        runs = [p.astype(np.float64) for p in plain]
        if not all(np.isfinite(a).all() for a in (exact, *runs)):
            return None
        if np.max(np.abs(exact), initial=0.0) > LARGEST[form.dtype]:
            return None
        errors = [p - exact for p in runs]
        error = np.max(np.abs(errors), axis=0)
        asked = form.dtype, form.precision, exact
        allowed = None if exact.size < FEW else Allowance.of(*asked, errors, form.times)
        limits = tolerance(*asked, exact + error, form.times)
        over = rms(error)
        return Usual(exact, rms(exact), limits, over, norm_ratio(error, exact), allowed)


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Reference:
    """The reference results of a spec at some sizes and a seed. Its arrays never change."""

    inputs: Arrays
    exact: Arrays  # in float64 (integers exact)
    storage: Arrays  # plain arithmetic in the spec's own dtypes
    # Plain arithmetic again with other, equally valid roundings. Present for inputs of the other
    # draws, and for outputs of few elements, because one run says little about them.
    noisy: tuple[Arrays, ...] = ()
    draw: str = ""  # one of `draws`; empty: the normal one
    # Which rows the arrays hold, of outputs that are too expensive to compute whole
    rows: Rows = WHOLE
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # the full shapes of these
    # Derived requirements by form and output, made on first use.
    _usual: dict[tuple[Form, str], Usual | None] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    def __post_init__(self) -> None:
        note(self)

    def shape(self, name: str) -> tuple[int, ...]:
        """The full shape of an output."""
        return self.shapes.get(name, self.storage[name].shape)

    def known(self, name: str, output: np.ndarray) -> np.ndarray:
        """The part of an output that is compared, copied from the device if it is held there."""
        return np.asarray(self.rows.taken(name, output))

    def place(self, name: str, at: Sequence[int]) -> tuple[int, ...]:
        """The position in the whole output, for a position in that part."""
        places = self.rows.outputs.get(name, {})
        return tuple(int(places[axis][n]) if axis in places else n for axis, n in enumerate(at))

    def usual(self, form: Form, name: str) -> Usual | None:
        """The requirements on a float output if the reference is finite everywhere; else None. It
        is the same for all candidates, so it is computed once, and by `prepare` before processes
        are forked."""
        if (form, name) not in self._usual:
            plain = [self.storage[name], *(n[name] for n in self.noisy)]
            self._usual[form, name] = Usual.of(form, self.exact[name], plain)
        return self._usual[form, name]

    @property
    def derived(self) -> Iterator[np.ndarray]:
        """Further arrays that are derived from results."""
        for one in self._usual.values():
            if one is not None and one.allowance is not None:
                yield one.allowance.sizes

    @property
    def bytes(self) -> int:
        """The size of its arrays."""
        groups = (arrays_of(self.inputs), self.exact, self.storage, *self.noisy)
        return sum(array.nbytes for group in groups for array in group.values())


@dataclass(frozen=True, slots=True)
class Errors:
    """The errors of one output. For units, see `Check`."""

    rel_err: float = 0.0
    reference_rel_err: float = 0.0
    max_err: float = 0.0


def compare_output(
    form: Form, sizes: Sizes, name: str, got: np.ndarray, known: Reference
) -> Errors:
    """The errors of one output against the reference. BackendError("check") if they exceed the limits."""
    dtype, precision = form.dtype, form.precision
    got, exact = known.known(name, got), known.exact[name]
    plain = [known.storage[name], *(n[name] for n in known.noisy)]
    if dtype not in FLOATS:
        free = np.any([p != exact for p in plain], axis=0) if known.draw else False
        _require_at(sizes, name, got, exact, (got == exact) | free, "they must be equal", known)
        return Errors()
    _require_format(sizes, name, got, dtype, known)
    usual = known.usual(form, name)
    if usual is not None and np.isfinite(got).all():
        return _compared(form, sizes, name, got.astype(np.float64), usual, known)
    got, exact, *plain = (a.astype(np.float64) for a in (got, exact, *plain))
    most = LARGEST[dtype]
    beyond = most if dtype in FINITE else np.inf
    whole, exact = exact, np.where(np.abs(exact) > most, np.copysign(beyond, exact), exact)
    lost = _lost(whole, exact, plain, bool(known.draw))
    if known.draw in (NAN, INFINITE, POSITIVE) and not form.selects:
        _require_kept(sizes, name, got, exact, plain, most, known)
    finite = np.isfinite(exact) & np.all(np.isfinite(plain), axis=0) & ~lost
    true = np.where(finite, exact, 0.0)
    errors = [np.where(finite, p, 0.0) - true for p in plain]
    error = np.max(np.abs(errors), axis=0)
    overflows = np.zeros(true.shape, bool)
    # A value that overflows also adds to the scale, because its terms add to the errors of other
    # sums
    if known.draw:
        overflows = np.isfinite(whole) & ~finite & ~lost
        true = np.where(overflows, whole, true)
    limits = tolerance(dtype, precision, true, true + error, form.times)
    edges = np.abs(np.clip(got, -most, most) - np.clip(whole, -most, most))
    near = np.isfinite(whole) & (edges <= limits.element + limits.relative * most)
    _require_specials(sizes, name, got, exact, plain[0], near | lost, known)
    finite &= np.isfinite(got)
    got, exact = (np.where(finite, a, 0.0) for a in (got, exact))
    off = np.abs(got - exact)
    least = spacing(dtype)
    _require_near(sizes, name, got, exact, off, limits, least, known)
    few = off.size < FEW  # for few elements, the mean says no more than one element does
    if rms(off) > limits.rmse + least and not few:
        raise fault(sizes, _far(name, rms(off), limits, precision, rms(error)))
    if not overflows.any():  # else finite values are small only because large terms cancel
        kept = [np.where(finite, e, 0.0) for e in errors]
        for why in allowance(dtype, precision, got, exact, kept, form.times):
            raise fault(sizes, f"output `{name}` {why}")
    largest = float(np.max(off, initial=0.0)) / (rms(exact) or 1.0)
    return Errors(norm_ratio(off, exact), norm_ratio(error * finite, exact), largest)


def _compared(
    form: Form, sizes: Sizes, name: str, got: np.ndarray, usual: Usual, known: Reference
) -> Errors:
    """The same as `compare_output`, for a finite output with such requirements."""
    limits, exact, least = usual.limits, usual.exact, spacing(form.dtype)
    signed = got - exact
    off = np.abs(signed)
    largest = float(np.max(off, initial=0.0))
    if largest > limits.element + least:
        _require_near(sizes, name, got, exact, off, limits, least, known)
    mean = rms(off)
    if mean > limits.rmse + least and off.size >= FEW:
        raise fault(sizes, _far(name, mean, limits, form.precision, usual.error))
    for why in usual.allowance.faults(signed, exact) if usual.allowance else ():
        raise fault(sizes, f"output `{name}` {why}")
    return Errors(ratio(mean, usual.size), usual.rel_err, largest / (usual.size or 1.0))


def _require_near(
    sizes: Sizes,
    name: str,
    got: np.ndarray,
    exact: np.ndarray,
    off: np.ndarray,
    limits: Tolerance,
    least: float,
    known: Reference,
) -> None:
    """Requires that each element is within its limit. off: the absolute errors."""
    limit = limits.element + limits.relative * np.abs(exact) + least
    rule = f"{limits.element:.3g} + {limits.relative:.3g} of its size is allowed"
    _require_at(sizes, name, got, exact, off <= limit, rule, known)


def _far(name: str, mean: float, limits: Tolerance, precision: str, plain: float) -> str:
    return (
        f"output `{name}` has a root mean square error of {mean:.4g}; {limits.rmse:.4g} is allowed "
        f"(plain {precision} arithmetic gives {plain:.4g})"
    )


def _lost(
    whole: np.ndarray, exact: np.ndarray, plain: Sequence[np.ndarray], drawn: bool
) -> np.ndarray:
    """Where plain arithmetic has no finite result although float64 has one in range of the dtype.
    For draws other than the normal one, also where float64 has none. whole: float64's result before
    it was rounded to the dtype as `exact`."""
    overflow = np.isfinite(whole) & ~np.isfinite(exact)
    same = overflow & np.all([p == exact for p in plain], axis=0)
    known = np.isfinite(whole) | drawn
    return known & ~np.all(np.isfinite(plain), axis=0) & ~same


def _require_kept(
    sizes: Sizes,
    name: str,
    got: np.ndarray,
    exact: np.ndarray,
    plain: Sequence[np.ndarray],
    most: float,
    known: Reference,
) -> None:
    """Requires NaN, or infinity, wherever float64 and plain arithmetic have it. For infinite
    inputs, a NaN of the reference may instead be the limit of a function."""
    if known.draw == NAN:
        special = np.all(np.isnan([exact, *plain]), axis=0)
        kept = np.isnan(got)
    else:
        special = np.all(np.isinf([exact, *plain]), axis=0)
        kept = ~(np.abs(got) < most)  # the largest number of a dtype counts as infinity
    _require_at(sizes, name, got, exact, ~special | kept, "it must not be finite", known)


def _require_format(sizes: Sizes, name: str, got: np.ndarray, dtype: str, known: Reference) -> None:
    """Requires that a dtype held in a wider one has no extra bits set."""
    if dtype in _OWN and got.dtype == HELD_AS[dtype]:
        return
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
    """Requires NaN exactly where the reference has it, and infinity where the reference or plain
    arithmetic has it. free: where infinity is as close as a number, or any value is valid."""
    both_nan = np.isnan(got) & np.isnan(exact)
    both_finite = np.isfinite(got) & np.isfinite(exact)
    infinite = np.isinf(got) & ((got == exact) | (got == storage))
    why = "not written, or computed from what was not"
    good = both_nan | both_finite | infinite | free
    _require_at(sizes, name, got, exact, good, why, known)


def _require_at(
    sizes: Sizes,
    name: str,
    got: np.ndarray,
    exact: np.ndarray,
    good: np.ndarray,
    rule: str,
    known: Reference,
) -> None:
    """Requires that every position is good; the error names the first one that is not."""
    if good.all():
        return
    at = tuple(map(int, np.unravel_index(int(np.argmin(good)), good.shape)))
    position = ", ".join(map(str, known.place(name, at)))
    compared = "compared elements" if name in known.rows.outputs else "elements"
    raise fault(
        sizes,
        f"output `{name}`{list(known.shape(name))} at [{position}] is {got[at]!s}, expected "
        f"{exact[at]!s}; {rule}; {int((~good).sum())} of {good.size} {compared} are off",
    )


def fault(sizes: Sizes, what: str) -> BackendError:
    shape = ", ".join(f"{name}={size}" for name, size in sizes.items())
    return BackendError("check", f"at {shape}: {what}" if shape else what)


def same_bits(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two arrays hold the same bits, in one dtype and shape."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if isinstance(one, Held) and isinstance(other, Held):
        return one.same_bits(other)
    bits, others = (np.ascontiguousarray(a).reshape(-1).view(np.uint8) for a in (one, other))
    return np.array_equal(bits, others)
