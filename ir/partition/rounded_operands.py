"""Rounds the operands of a TF32 convolution, channels last, where they are produced.

before: y[b, o, i, j] = relu(a[b, o, i, j])
        z[b, o, i, j] = sum(pad(y[b, c, i + r - 1, j + s - 1], 0.0) * w[o, c, r, s], c, r, s)
after:  y[b, o, i, j] = relu(a[b, o, i, j])
        operand[b, i, j, c] = tf32(y[b, c, i, j])
        operand_2[r, s, o, c] = tf32(w[o, c, r, s])
        z[b, o, i, j] = sum(pad(operand[b, i + r - 1, j + s - 1, c], 0.0) * operand_2[r, s, o, c], c, r, s)

The kernel that computes `y` stores the rounded copy as well, or only the copy if nothing else reads
`y`. The copy of a fixed filter is a constant. A schedule can make such copies only by separate
launches, at each call.

A 1x1 convolution reads what a depthwise one computes as it is: the taps of a depthwise convolution
move along the rows of an image, where adjacent threads read adjacent pixels. On an H200 one of 64
channels of 512 x 512 pixels (16 images) took 615 us with channels first, and 1151 to 2207 us with
channels last in eleven schedules. The 1x1 convolution after it took 836 us with channels first and
851 to 949 us with rounded channels last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from math import prod

from ir.contraction import contraction, indices, product
from ir.partition.channels_last import convolution_parts
from ir.partition.flat_pixels import FlatPixels
from ir.partition.views import fresh
from ir.sizes import value as number
from ir.spec import Cast, Equation, Index, Number, Read, Reduce, Scan, Spec
from ir.verify import Facts, facts

NARROW = "tf32"  # dtype that operands are rounded to
FEW = 16  # least number of channels that fills the K dimension of a matmul without filter taps
VECTOR = 4  # elements of f32 in 16 bytes


def with_rounded_operands(
    spec: Spec, fixed: Collection[str], rounded: Collection[str]
) -> tuple[Spec, dict[str, str]]:
    """Lets the convolutions of a literal spec read rounded copies of their operands.

    Returns the spec and the aliases that it adds: by view, the tensor whose memory it shows.

    fixed: inputs that do not change between calls.
    rounded: targets of the sums of products whose operands may be rounded.
    """
    known = facts(spec)
    taken = {t.name for t in spec.inputs} | {e.target for e in spec.equations}
    copies: dict[tuple[str, tuple[int, ...]], str] = {}
    shown: dict[str, str] = {}
    made: list[Equation] = []
    # A copy of an input would be a kernel of its own; whether that pays is up to a schedule.
    given = {t.name for t in spec.inputs} - set(fixed)
    for e in spec.equations:
        orders = (
            _orders(e, known) if e.target in rounded and not _is_separable(e, spec, known) else {}
        )
        reads: dict[Read, Read] = {}
        if flat := _flat(e, orders, given, known):
            name, pixels = fresh("operand", taken), fresh("operand_pixels", taken)
            made += flat.copies(name, pixels, NARROW, known)
            shown[pixels] = name
            reads[flat.x] = flat.read(pixels)
        elif any(read.tensor in given for read in orders):
            orders = {}
        for read, order in orders.items():
            if read in reads:
                continue
            if (read.tensor, order) not in copies:
                # Numbered, so that equal copies are one kernel whatever they copy.
                copies[read.tensor, order] = fresh("operand", taken)
                made.append(_copy(copies[read.tensor, order], read.tensor, order, known))
            at = tuple(read.at[d] for d in order)
            reads[read] = replace(read, tensor=copies[read.tensor, order], at=at)
        made.append(_reading(e, reads) if reads else e)
    return replace(spec, equations=tuple(made)), shown


def _orders(e: Equation, known: Facts) -> dict[Read, tuple[int, ...]]:
    """The operands of a convolution, each with the dimension order of its copy.

    Empty if the equation is no convolution that TF32 matrix units take as it is.
    """
    found = contraction(e)
    parts = convolution_parts(e) or without_taps(e)
    if parts is None or found is None:
        return {}
    x, w, taps = parts
    channels = [i for i in e.reduced if i not in taps]
    outs = [i for i in e.indices if i in indices(w)]
    plain = {found.a, found.b} == {x, w} and x.pad in (None, 0.0) and w.pad is None
    if not plain or len(channels) != 1 or len(outs) != 1 or outs[0] in indices(x):
        return {}
    (channel,) = channels
    once = all(sum(channel in indices(p) for p in read.at) == 1 for read in (x, w))
    places = [n for n, read in enumerate((x, w)) if once and Index(channel) in read.at]
    wide = all(known.tensors[read.tensor].dtype == "f32" for read in (x, w))
    counts = [number(known.ranges[i].high, {}) for i in (channel, outs[0])]
    if len(places) < 2 or not wide or min(counts) < FEW:
        return {}
    last = x.at.index(Index(channel))
    beside = [d for d, p in enumerate(w.at) if p != Index(channel)]
    beside.sort(key=lambda d: not taps & set(indices(w.at[d])))
    return {
        x: (*(d for d in range(len(x.at)) if d != last), last),
        w: (*beside, w.at.index(Index(channel))),
    }


def _is_separable(e: Equation, spec: Spec, known: Facts) -> bool:
    """Whether an equation is a 1x1 convolution of what a depthwise one computes, of planes that are
    multiples of 16 bytes, as boxes of them must be."""
    parts = without_taps(e)
    if parts is None:
        return False
    image, _, _ = parts
    plane = prod(number(n, {}) for n in known.tensors[image.tensor].shape[2:])
    return plane % VECTOR == 0 and _is_depthwise(image.tensor, spec)


def _is_depthwise(tensor: str, spec: Spec) -> bool:
    """Whether a depthwise convolution computes a tensor, with only pointwise equations after it, and nothing else reads
    any of it."""
    equations = {e.target: e for e in spec.equations}
    readers = Counter(t for e in spec.equations for t in set(e.sources()))
    kept = {t.name for t in spec.outputs}
    while readers[tensor] == 1 and tensor not in kept and tensor in equations:
        e = equations[tensor]
        if isinstance(e.value, Reduce):
            return _multiplies_windows(e)
        own = {r.tensor for r in e.reads() if r.at == e.at and r.tensor in equations}
        if e.accumulate or isinstance(e.value, Scan) or len(own) != 1:
            return False
        (tensor,) = own
    return False


def _multiplies_windows(e: Equation) -> bool:
    """Whether a sum multiplies windows along the rows of each channel by a filter."""
    images = [r for r in e.reads() if len(r.at) == len(e.at) and r.at[:2] == e.at[:2]]
    if len(images) != 1 or len(e.reads()) != 2 or contraction(e) is None:
        return False
    last = set(indices(images[0].at[-1]))
    return bool(last & set(e.reduced)) and last > set(indices(e.at[-1]))


def _flat(
    e: Equation, orders: Mapping[Read, tuple[int, ...]], given: Collection[str], known: Facts
) -> FlatPixels | None:
    """The flat-pixel form of a convolution that reads an input; None if it has none."""
    parts = convolution_parts(e)
    if parts is None or not orders:
        return None
    x, w, taps = parts
    if x.tensor not in given or w.tensor in given:
        return None
    (channel,) = (i for i in e.reduced if i not in taps)
    return FlatPixels.of(e, x, taps, channel, known)


def without_taps(e: Equation) -> tuple[Read, Read, set[str]] | None:
    """Like `convolution_parts`, for a 1x1 filter whose other dimensions have size 1."""
    found = contraction(e)
    reads = [side for side in (found.a, found.b) if isinstance(side, Read)] if found else []
    for x, w in (reads, reads[::-1]) if len(reads) == 2 else ():
        ones = [p for p in w.at if not isinstance(p, Index)]
        if len(x.at) == len(e.at) == len(w.at) and ones == [Number(0)] * (len(w.at) - 2):
            return x, w, set()
    return None


def _copy(name: str, tensor: str, order: tuple[int, ...], known: Facts) -> Equation:
    at = tuple(Index(f"{name}_d{d}") for d in range(len(order)))
    sizes = tuple(known.tensors[tensor].shape[d] for d in order)
    return Equation(name, tuple(at[d] for d in order), Cast(NARROW, Read(tensor, at)), sizes=sizes)


def _reading(e: Equation, reads: dict[Read, Read]) -> Equation:
    found = contraction(e)
    assert found is not None
    body = product(tuple(reads[side] for side in (found.a, found.b) if isinstance(side, Read)))
    return replace(e, value=replace(e.reduce, body=body))
