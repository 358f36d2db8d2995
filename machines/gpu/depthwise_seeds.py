"""Seeds of depthwise convolutions that neither read nor store channels last: thread blocks of one
warp.

A block computes 512 elements of one channel, so its threads load adjacent pixels for each tap.
Where no window reaches over an edge of the image, a block has one whole row of up to 512 pixels.
Measured on an H200, us, by rows x columns of a block of 32 threads:

    taps    pixels                whole row   2 x 256   4 x 128   8 x 64   64 threads
    3 x 3   510 x 510                   574       673       649      630   660 to 868
    3 x 7   126 x 250                   725       781      1045     1050   1060 to 1148
    3 x 3   512 x 512, with edges         -       998       615        -   751

The time model estimates them within 6% of each other, because it overestimates the arithmetic of
taps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

from ir.affine import affine
from ir.autoschedule.seeds import tiled
from ir.contraction import contraction, indices
from ir.lower.verb_table import canonical
from ir.machine import Machine
from ir.schedule import Decision, Schedule
from ir.sizes import power_of_two
from ir.spec import Equation, Read, Reduce, Scan, Spec
from machines.gpu.index_roles import extents, roles

THREADS, ELEMENTS = 32, 512  # of a block
PIECE = 128  # columns of a block where windows reach over an edge
PLACES = 4  # dimensions of the image: batch, channels, rows, columns
LEAST = 1 << 20  # elements above which a pass takes longer than a launch
SHARE = 0.9  # factor on the time model's estimate of such a block


def depthwise_seeds(
    spec: Spec, machine: Machine, sizes: Mapping[str, int], first: Schedule
) -> Iterator[tuple[float, Schedule]]:
    """Yields other tiles for such a convolution, each with a factor on its estimate. Empty for
    other kernels, and where a warp does not have 32 threads.

    sizes: the free and the derived ones.
    """
    if machine.warp != THREADS or {d.verb for d in first.decisions} - {"tile", "place", "threads"}:
        return
    result, lengths = spec.equations[-1], extents(spec, sizes)
    image = _image(spec, result)
    if image is None or prod(lengths[i] for i in result.indices) < LEAST:
        return
    *_, rows, row = result.indices
    if image.pad is not None and lengths[row] >= PIECE:
        cut = {row: PIECE, rows: ELEMENTS // PIECE}
    elif image.pad is None and PIECE < power_of_two(lengths[row]) <= ELEMENTS:
        cut = {}
    else:
        return
    tiles = [tiled(i, cut.get(i, 1), "grid") for i in result.indices if cut or i != row]
    tiles += [tiled(i, 1, "loop") for i in sorted(roles(spec).taps)]
    last = first.of("threads")[-1].subject
    threads = Decision("threads", last, (("count", THREADS),))
    yield SHARE, canonical(Schedule(first.kernel, (*(d for t in tiles for d in t), threads)))


def _image(spec: Spec, result: Equation) -> Read | None:
    """The read of the image of a depthwise convolution of stride 1 that only pointwise equations
    follow; None for other kernels."""
    sums = [e for e in spec.equations if isinstance(e.value, Reduce)]
    own = {(e.indices, e.accumulate, isinstance(e.value, Scan)) for e in spec.equations}
    if len(sums) != 1 or own != {(result.indices, False, False)} or len(result.indices) != PLACES:
        return None
    (e,) = sums
    images = [r for r in e.reads() if len(r.at) == PLACES and r.at[:2] == e.at[:2]]
    if len(images) != 1 or len(e.reads()) != 2 or contraction(e) is None:
        return None
    columns = affine(images[0].at[-1])
    if columns is None or columns.coefficient(e.indices[-1]) != 1 or len(columns.terms) != 2:
        return None
    return images[0] if set(indices(images[0].at[-1])) & set(e.reduced) else None
