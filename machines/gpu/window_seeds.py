"""Seeds of a convolution whose operands are first packed into other orders: TMA boxes of windows.

The seed reads windows by threads. TMA fills out-of-bounds elements of an image with zeros, so a
tile of output pixels is one box for each filter tap. A search tries these tiles beside the seed:

    large    256 pixels for two warpgroups, persistent
    square   128 pixels for two warpgroups
    small    128 pixels for one warpgroup, several blocks per multiprocessor

Where a backend has windows that blocks transpose (`copy(x, by=window)`), the image is not packed. A
block loads its tile with the surrounding pixels once, and all filter taps read that. Such blocks
are small, as several blocks on a multiprocessor hide each other's latency.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from ir.contraction import contraction
from ir.edits.stages import copy, pipeline
from ir.lower.lower import fits
from ir.lower.verb_table import canonical
from ir.machine import WINDOW, Machine
from ir.schedule import Decision, Schedule
from ir.sizes import power_of_two
from ir.spec import DTYPES, Spec
from ir.variant.derived import copy_of
from machines.gpu.index_roles import extents, roles

WRITTEN, READ = 32, 64  # tile of a packed copy along its last index, and along the one before
COPIED = 4096  # elements of the tile of a packed copy
CHANNELS = (16, 32, 64, 128, 256)  # output channels that form one tile
STEPS = (64, 32, 16)  # input channels per K step, the first that fits


@dataclass(frozen=True, slots=True)
class _Shape:
    pixels: int
    stages: int
    threads: int
    persistent: bool = False
    producers: int = 0  # 0: the backend chooses


SHAPES = (_Shape(256, 3, 256, True), _Shape(128, 4, 256), _Shape(128, 4, 128, producers=32))


# Pixels, threads and instruction; empty: a warpgroup instruction
IN_BLOCK = ((128, 128, ""), (128, 256, ""), (256, 256, ""), (128, 128, "m16n8k16"))
COLUMNS = 32  # of a warpgroup instruction, where the result has several of them
WIDTH = 2  # bytes of an element of transposed windows
ROW, PANEL = 128, 64  # bytes of the widest panel, and of one that rows of 32 channels fill


@dataclass(frozen=True, slots=True)
class _Windows:
    """A convolution over packed copies, as a seed tiles it."""

    first: Schedule
    target: str  # of the convolution
    result: str  # the stored tensor
    copies: tuple[str, ...]  # prefetched tensors: packed copies, and inputs read in their own order
    pixels: tuple[str, ...]  # the indices of output pixels
    channel: str  # of the result
    step: str  # the reduced channel index
    taps: frozenset[str]
    extents: Mapping[str, int]


def of_packed_windows(
    spec: Spec, machine: Machine, sizes: Mapping[str, int], first: Schedule
) -> tuple[Schedule, ...]:
    """Legal schedules with TMA boxes of windows, also with pixels as M. Empty where the seed,
    `first`, is no convolution of packed copies."""
    found = _windows(spec, first, sizes)
    if found is None or {copy_of(d) for d in first.of("pack")} != set(found.copies):
        return ()
    made = (
        next((s for s in _tiled(found, shape, rows) if fits(spec, s, machine, sizes)), None)
        for shape, rows in product(SHAPES, (True, False))
    )
    return tuple(dict.fromkeys(s for s in made if s is not None))


def of_windows_in_blocks(
    spec: Spec, machine: Machine, sizes: Mapping[str, int], first: Schedule
) -> tuple[Schedule, ...]:
    """Legal schedules whose blocks transpose windows of the image. Empty where the seed, `first`,
    is no convolution of packed copies, or where the backend has no such windows."""
    found = _windows(spec, first, sizes)
    if found is None or WINDOW not in machine.rendered_engines:
        return ()
    pixels, copied = set(found.pixels), {copy_of(d) for d in first.of("pack")}
    packs = [d for d in first.of("pack") if pixels & set(str(d.option("order")).split("_"))]
    images = [*(d.subject for d in packs), *(n for n in found.copies if n not in copied)]
    dtypes = {t.name: t.dtype for t in spec.inputs}
    if len(images) != 1 or DTYPES.get(dtypes.get(images[0], "")) != WIDTH:
        return ()
    made = (_in_blocks(found, images[0], *shape) for shape in IN_BLOCK)
    return tuple(s for s in made if s is not None and fits(spec, s, machine, sizes))


def _in_blocks(
    found: _Windows, image: str, pixels: int, threads: int, instruction: str
) -> Schedule | None:
    """A schedule with tiles of so many pixels; None where there are fewer."""
    cut = _cut(found, pixels)
    if cut is None:
        return None
    weights = [d for d in found.first.of("pack") if d.subject != image]
    copies = [copy_of(d) for d in weights]
    order = "_".join((*found.pixels, found.channel))
    made = [
        *(Decision("unroll", i) for i in sorted(found.taps)),
        *_copies(found, weights),
        Decision("pack", found.target, (("order", order),)),
        *(Decision("tile", i, (("size", n),)) for i, n in cut.items()),
        *(Decision("place", f"{i}.outer", (("level", "grid"),)) for i in found.pixels),
        copy(image, WINDOW),
        Decision("threads", found.result, (("count", threads),)),
        Decision("specialize", found.result),
    ]
    row, channels = WIDTH * found.extents[found.step], found.extents[found.channel]
    if row > ROW and row % ROW == PANEL:  # panels of 128 bytes would be partly zeros
        made += [Decision("swizzle", n, (("bytes", PANEL),)) for n in (image, *copies)]
    if not instruction and channels & (channels - 1) and channels % COLUMNS == 0:
        instruction = (
            f"m64n{COLUMNS}k16"  # one with more columns would round them up to a power of two
        )
    if instruction:
        made.append(Decision("instruction", found.target, (("shape", instruction),)))
    return canonical(Schedule(found.first.kernel, tuple(made)))


def _cut(found: _Windows, pixels: int) -> dict[str, int] | None:
    """Tile sizes that give so many pixels; None where there are fewer."""
    cut: dict[str, int] = {}
    for index in reversed(found.pixels):
        cut[index] = min(pixels, power_of_two(found.extents[index]))
        pixels //= cut[index]
    return cut if pixels == 1 else None


def _windows(spec: Spec, first: Schedule, sizes: Mapping[str, int]) -> _Windows | None:
    own = roles(spec)
    products = [e for e in spec.equations if contraction(e) is not None]
    packed = {d.subject: copy_of(d) for d in first.of("pack")}
    inputs = {t.name for t in spec.inputs}
    moved = {d.subject for d in first.of("pipeline")}
    if len(products) != 1 or len(own.sides) != 1 or not own.taps or own.stepped or own.jagged:
        return None
    if not moved or not packed or not inputs.issuperset(packed):
        return None
    pixels, channels = sorted(own.sides[0], key=len, reverse=True)
    steps = own.summed - own.taps
    if len(channels) != 1 or len(steps) != 1 or len(pixels) < 2:
        return None
    return _Windows(
        first=first,
        target=products[0].target,
        result=first.of("threads")[-1].subject,
        copies=tuple(sorted(moved)),
        pixels=pixels,
        channel=channels[0],
        step=next(iter(steps)),
        taps=own.taps,
        extents=extents(spec, sizes),
    )


def _tiled(found: _Windows, shape: _Shape, rows: bool) -> Iterator[Schedule]:
    """Schedules with tiles of so many pixels, stored in bulk or by threads. rows: pixels are M of the matmul."""
    cut = _cut(found, shape.pixels)
    step = next((n for n in STEPS if n <= found.extents[found.step]), None)
    if cut is None or step is None:
        return
    if found.extents[found.channel] in CHANNELS:  # TMA fills whole tiles
        cut[found.channel] = found.extents[found.channel]
    tiles = {**cut, found.step: step, **dict.fromkeys(found.taps, 1)}
    made = [
        *(Decision("tile", i, (("size", n),)) for i, n in tiles.items()),
        *(
            Decision("place", f"{i}.outer", (("level", "grid"),))
            for i in (*found.pixels, found.channel)
            if i in cut
        ),
        Decision("place", f"{found.step}.outer", (("level", "loop"),)),
        *(pipeline(name, shape.stages) for name in found.copies),
        *(copy(name, "bulk") for name in found.copies),
        Decision("threads", found.result, (("count", shape.threads),)),
    ]
    if shape.persistent:
        made.append(Decision("persistent", found.result, (("programs", 1),)))
    if shape.producers:
        made.append(Decision("roles", found.result, (("producers", shape.producers),)))
    if rows:
        order = "_".join((*found.pixels, found.channel))
        made.append(Decision("pack", found.target, (("order", order),)))
    for more in ([copy(found.result, "bulk")], []):
        yield canonical(
            Schedule(found.first.kernel, (*_copies(found, found.first.of("pack")), *made, *more))
        )


def _copies(found: _Windows, packs: Sequence[Decision]) -> Iterator[Decision]:
    """The packs with tiles that are boxes, contiguous in what they read and write; and the compute unit."""
    yield from (*packs, *found.first.of("compute"))
    for pack in packs:
        name, left = copy_of(pack), COPIED
        first, *order = str(pack.option("order")).split("_")
        for place, index in enumerate((*reversed(order), first)):
            most = WRITTEN if place == 0 else READ if place == 1 else left
            one = index in found.taps or index == first  # of images
            size = 1 if one else min(most, left, power_of_two(found.extents[index]))
            left //= size
            yield Decision("tile", f"{name}_{index}", (("size", size),))
