"""Seeds of a convolution whose operands are already rounded: other tiles of its output pixels.

The input is gathered: at each K step, each row of a tile has its own address and bounds checks.
These seeds gather less for the same matmul:

- boxes of a few images, rows and columns, which TMA copies, and which divide the image evenly;
- such boxes with all phases of their pixels, where a transposed convolution stores its phases in
  place (`ir/partition/phases_in_place.py`);
- pixels of two images in a tile, where the pixels of one image leave the last tile nearly empty;
- twice as many filters per tile, where pixels of all images are flattened.

Where pixels are one index with zeros stored between them (`ir/partition/flat_chains.py`), one seed
runs all filter taps of a channel step in succession: each tap rereads almost all pixels of the tap
before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from math import ceil, prod

from ir.autoschedule.seeds import tiled
from ir.contraction import indices
from ir.edits.stages import copy, pipeline
from ir.lower.verb_table import canonical
from ir.machine import Machine
from ir.schedule import Decision, Schedule
from ir.spec import Spec
from ir.variant.derived import flattened
from machines.gpu.index_roles import extents
from machines.gpu.role_seeds import changed
from machines.gpu.windowed import Convolution, single_convolution

KNOWN = {"compute", "copy", "flatten", "pipeline", "place", "rasterize", "threads", "tile"}
SIDE, STEP, STAGES = 128, 32, 3  # M and N of a matmul tile, its K, and stages
NARROWEST = 8  # least columns of a box
# Accumulator elements of a thread with bulk copies; twice as many for a thread that gathers.
PER_THREAD = 64
# Factor on the time model's estimate of a tile with twice as many filters, against a square one. On
# an H200 four convolutions of VGG took 0.77, 0.77, 0.91 and 0.78 times as long with it; the model
# estimated 0.96 to 1.06.
SHARED = 0.85
# Factor on the estimate where all filter taps of a channel step follow one another, against all
# channels of a tap. On an H200 five convolutions of VGG took 1.00, 0.98, 0.94, 0.89 and 0.96 times
# as long with it; the model estimated 1.06, 1.04, 1.02, 1.09 and 1.00.
NEAR = 0.9
# Factor on the time model's estimate of a tile with all phases of its pixels, against tiles of one
# phase. Those store each second element, which the model does not see: on an H200 one such kernel
# took 8247 us, and 1390 us with all phases.
WHOLE_PERIODS = 0.5


def pixel_seeds(
    spec: Spec, machine: Machine, sizes: Mapping[str, int], first: Schedule
) -> Iterator[tuple[float, Schedule]]:
    """Yields the schedule with other tiles of its pixels, each with a factor on its estimate; some
    may be illegal. Empty for other kernels. sizes: the free and the derived ones."""
    one = single_convolution(spec, sizes)
    if one is None or not one.taps or not one.reads_rounded():
        return
    if {d.verb for d in first.decisions} - KNOWN or len(first.of("threads")) != 1:
        return
    made = _Pixels(one, first, extents(spec, sizes))
    if made.interleaved and "bulk" in machine.rendered_engines:
        yield WHOLE_PERIODS, made.periods()
    if made.flat:
        yield NEAR, made.near()
    if not made.plain:
        return
    if "bulk" in machine.rendered_engines:
        yield 1.0, made.boxes()
    yield 1.0, made.beside()
    if (wide := made.wide()) is not None:
        yield SHARED, wide


class _Pixels:
    """A convolution, a schedule of it, and the extent of each index."""

    def __init__(self, one: Convolution, first: Schedule, lengths: Mapping[str, int]):
        self.one, self.first, self.lengths = one, first, lengths
        self.pixels = one.positions()
        weighed, moved = {*indices(one.w)}, {*indices(one.x)}
        self.filters = [i for i in one.e.indices if i in weighed - moved]
        self.images = [i for i in one.e.indices if i in moved - weighed - {*self.pixels}]

    @property
    def plain(self) -> bool:
        """Whether it convolves several two-dimensional images that are read unflattened, with
        channels that are a multiple of the K step and enough filters for a tile."""
        counts = [len(x) for x in (self.filters, self.images, self.pixels, self.one.channels)]
        if counts != [1, 1, 2, 1] or any({*self.pixels} <= {*indices(p)} for p in self.one.x.at):
            return False
        filled = self.lengths[self.filters[0]] >= SIDE
        return filled and self.lengths[self.one.channels[0]] % STEP == 0

    @property
    def interleaved(self) -> bool:
        """Whether it stores the phases of a transposed convolution in place
        (`ir/partition/phases_in_place.py`), of channels that fill tiles."""
        counts = [len(x) for x in (self.images, self.pixels, self.one.channels)]
        if len(self.filters) < 2 or counts != [1, 2, 1] or self.one.e.indices[-1] in self.pixels:
            return False
        channels, phases = self.lengths[self.filters[0]], self._phases
        fills = SIDE % phases == 0 and channels % (SIDE // phases) == 0
        return fills and self.lengths[self.one.channels[0]] % STEP == 0

    @property
    def _phases(self) -> int:
        return prod(self.lengths[i] for i in self.filters[1:])

    @property
    def flat(self) -> bool:
        """Whether its pixels are one index, and both filter taps and channels are tiled loops."""
        counts = [len(x) for x in (self.filters, self.images, self.pixels, self.one.channels)]
        cut = {d.subject for d in self.first.of("tile")}
        return counts == [1, 0, 1, 1] and {*self.one.taps, *self.one.channels} <= cut

    def near(self) -> Schedule:
        """The schedule with the loops over channels outside of those over filter taps."""
        moved = [i + outer for i in self.one.channels for outer in ("", ".outer")]
        own = [d for d in self.first.decisions if d.subject in moved]
        others = [d for d in self.first.decisions if d.subject not in moved]
        return canonical(Schedule(self.first.kernel, (*own, *others)))

    def boxes(self) -> Schedule:
        """The schedule with the boxes of pixels that waste the least."""
        return self._boxes(NARROWEST, SIDE)

    def periods(self) -> Schedule:
        """The schedule with such boxes and all phases of their pixels."""
        return self._boxes(2 * NARROWEST, SIDE // self._phases)

    def _boxes(self, narrowest: int, filters: int) -> Schedule:
        rows = (*self.images, *self.pixels)
        powers = [2**n for n in range(SIDE.bit_length())]
        shapes = [s for s in product(powers, repeat=3) if prod(s) == SIDE and s[-1] >= narrowest]
        box = min(shapes, key=lambda s: (self._covered(rows, s), -s[-1]))
        tiles = {**dict(zip(rows, box, strict=True)), self.filters[0]: filters}
        moved = [copy(t.tensor, "bulk") for t in (self.one.x, self.one.w)]
        return self._made((), tiles, SIDE * SIDE // PER_THREAD, moved)

    def beside(self) -> Schedule:
        """The schedule with pixels of two images in one tile."""
        outer, inner = self.pixels
        merge = Decision("flatten", outer, (("inner", inner),))
        tiles = {self.images[0]: 2, self.filters[0]: SIDE, flattened(merge): SIDE // 2}
        return self._made((merge,), tiles, SIDE * SIDE // (2 * PER_THREAD), [])

    def wide(self) -> Schedule | None:
        """The schedule with twice as many filters per tile. None where its pixels are not flattened
        over all images, or where its tiles are not square."""
        merged = [flattened(d) for d in self.first.of("flatten")]
        (filters,) = self.filters
        cut = {d.subject: d.number("size") for d in self.first.of("tile")}
        if len(merged) != len(self.pixels) or self.lengths[filters] % (2 * SIDE):
            return None
        if (cut.get(merged[-1]), cut.get(filters)) != (SIDE, SIDE):
            return None
        threads = (("count", SIDE * SIDE // PER_THREAD),)
        return changed(
            self.first,
            Decision("tile", filters, (("size", 2 * SIDE),)),
            Decision("threads", self._result, threads),
        )

    def _covered(self, rows: tuple[str, ...], box: tuple[int, ...]) -> float:
        """Pixels that boxes cover, over the pixels that exist."""
        pairs = [(self.lengths[i], n) for i, n in zip(rows, box, strict=True)]
        return prod(ceil(length / n) * n / length for length, n in pairs)

    @property
    def _result(self) -> str:
        return self.first.of("threads")[-1].subject

    def _made(
        self,
        merges: tuple[Decision, ...],
        tiles: Mapping[str, int],
        threads: int,
        moved: list[Decision],
    ) -> Schedule:
        """The schedule with these tiles, and loops over single filter taps and channel steps."""
        cuts = [tiled(i, n, "grid") for i, n in tiles.items() if n < self.lengths.get(i, n + 1)]
        loops = [tiled(i, 1, "loop") for i in self.one.taps if self.lengths[i] > 1]
        loops += [tiled(i, STEP, "loop") for i in self.one.channels if self.lengths[i] > STEP]
        decided = (
            *merges,
            *(d for cut in (*cuts, *loops) for d in cut),
            *self.first.of("compute"),
            *(pipeline(t.tensor, STAGES) for t in (self.one.x, self.one.w)),
            *moved,
            Decision("threads", self._result, (("count", threads),)),
        )
        return canonical(Schedule(self.first.kernel, decided))
