"""Stores the tensors between TF32 convolutions as zero-padded planes with one flat pixel index.

before: operand[b, i, j, c] = tf32(y[b, c, i, j])
        z[b, o, i, j] = sum(pad(operand[b, i + r - 1, j + s - 1, c], 0.0) * w[r, s, o, c], c, r, s)
        u[b, o, i, j] = relu(z[b, o, i, j] + g[o]), operand_2[b, i, j, o] = tf32(u[b, o, i, j])     where i, j < 28
after:  operand[b, i, j, c] = tf32(where((i < 28) & (j < 28), y[b, c, i, j], 0.0))                  where i, j < 29
        z[t, o] = sum(pad(operand_flat[t + r * 29 + s - 30, c], 0.0) * w[r, s, o, c], c, r, s)
        u[t, o] = relu(z[t, o] + g[o])
        operand_2[t, o] = tf32(where((t // 29 % 29 < 28) & (t % 29 < 28), u[t, o], 0.0))

The convolutions keep the size of their image. `operand_flat` is a view of `operand`. What a tile of
pixels reads at one filter tap is then one box of a matrix, which a bulk copy (TMA) can load. No
thread computes the addresses of its pixels or masks those out of bounds. Values computed at padding
positions are never read. The source of a chain's first operand is computed with padded rows, too
(`y` for i, j < 29).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from ir.contraction import contraction, indices, product
from ir.partition.planes import Image, Padded, SameSize
from ir.partition.reshaped import view
from ir.partition.rounded_operands import NARROW
from ir.partition.views import fresh, is_plain, is_pointwise
from ir.recurrence import recurrences
from ir.sizes import shape
from ir.spec import Apply, Cast, Equation, Expr, Facts, Index, Number, Range, Read, Reduce, Spec
from ir.verify import facts
from ir.visit import rebuilt, reindexed, renamed

# Largest ratio of plane positions to pixels; above it the extra work costs more than the copies
# save. On an H200 layers of VGG took 0.69 to 0.82 of the time of gathered pixels, and of boxes
# where images are not multiples of boxes. They took 0.99 and 1.02 where images are such multiples.
# The largest ratio among them was 1.15.
MOST = 1.2

Places = tuple[int, int, int, int]  # the dimensions of batch, channel, row and column


def with_flat_chains(spec: Spec, aliases: Mapping[str, str]) -> tuple[Spec, dict[str, str]]:
    """Rewrites the chains of a literal spec to padded planes; returns the spec and its aliases.

    aliases: by view, the tensor whose elements it shows.
    """
    chains = _Chains.of(spec, aliases)
    if not chains.convolutions:
        return spec, dict(aliases)
    made = _Making(chains, dict(aliases))
    for e in spec.equations:
        made.take(e)
    return replace(spec, equations=tuple(made.equations)), made.aliases


@dataclass(slots=True)
class _Chains:
    """Which equations of a spec are computed in padded planes.

    convolutions: by target.
    flat: by tensor whose pixels become one index, convolutions included: its dimensions.
    operands: rounded copies that are stored with padding zeros, by name: the image.
    longer: by tensor that is computed with padded rows: its dimensions.
    """

    spec: Spec
    known: Facts
    fixed: set[str]  # tensors that must keep their shape
    readers: dict[str, list[Equation]]
    convolutions: dict[str, SameSize]
    planes: dict[Image, Padded] = field(default_factory=dict)
    flat: dict[str, Places] = field(default_factory=dict)
    operands: dict[str, Image] = field(default_factory=dict)
    longer: dict[str, Places] = field(default_factory=dict)

    @staticmethod
    def of(spec: Spec, aliases: Mapping[str, str]) -> _Chains:
        known = facts(spec)
        recurring = (t for r in recurrences(spec) for t in r.targets)
        fixed = {t.name for t in (*spec.inputs, *spec.outputs)}
        added = (e.target for e in spec.equations if e.accumulate)
        fixed |= {*aliases, *aliases.values(), *recurring, *added}
        readers: dict[str, list[Equation]] = {}
        for e in spec.equations:
            for source in e.sources():
                readers.setdefault(source, []).append(e)
        found = {e.target: SameSize.of(e, known) for e in spec.equations if e.target not in fixed}
        convolutions = {t: one for t, one in found.items() if one is not None}
        made = _Chains(spec, known, fixed, readers, convolutions)
        while made.convolutions and (wrong := made.wrong()):
            for target in wrong:
                del made.convolutions[target]
        return made

    def image(self, tensor: str, places: Places) -> Image:
        """The image size of a tensor."""
        size = shape(self.known.tensors[tensor], {})
        return Image(size[places[0]], size[places[2]], size[places[3]])

    def plane(self, tensor: str) -> Padded:
        """The padded plane of a tensor that is in planes."""
        image = self.operands.get(tensor) or self.image(
            tensor, self.flat.get(tensor) or self.longer[tensor]
        )
        return self.planes[image]

    def wrong(self) -> set[str]:
        """Determines all tensors in planes; returns the convolutions for which that fails or does
        not pay."""
        self.planes, self.flat, self.operands, self.longer = {}, {}, {}, {}
        for one in self.convolutions.values():
            old = self.planes.get(one.image, Padded(one.image, 0, 0))
            (_, below), (_, beside) = one.taps
            self.planes[one.image] = Padded(
                one.image, max(old.below, below), max(old.beside, beside)
            )
        wide = {
            t for t, one in self.convolutions.items() if not 1 < self.planes[one.image].waste < MOST
        }
        if wide:
            return wide
        copies = {e.target for e in self.spec.equations if self.is_copy(e)}
        for e in self.spec.equations:
            if e.target in self.convolutions:
                one = self.convolutions[e.target]
                self.flat[e.target] = tuple(e.indices.index(i) for i in one.names)  # type: ignore[assignment]
            elif e.target not in copies and (places := self.pointwise(e)):
                self.flat[e.target] = places
        of = {t: one.x.tensor for t, one in self.convolutions.items()}
        bad = {t for t, x in of.items() if x not in copies or not self.extend_operand(x)}
        for e in self.spec.equations:
            sources = [r.tensor for r in e.reads() if r.tensor in self.flat]
            if e.target in copies and sources and self.stores_zeros(e):
                self.operands[e.target] = self.image(e.target, (0, 3, 1, 2))
            elif sources and not self.reads_well(e):
                bad |= {c for s in sources for c in self.before(s)}
        return bad

    def before(self, tensor: str) -> Iterator[str]:
        """The convolutions that a tensor depends on through pointwise equations alone."""
        if tensor in self.convolutions:
            yield tensor
        elif tensor in self.flat:
            for source in self.spec.equation(tensor).sources():
                yield from self.before(source)

    def is_copy(self, e: Equation) -> bool:
        """Whether an equation makes a rounded channels-last copy of an image."""
        match e.value:
            case Cast(dtype, Read(_, at, None)) if dtype == NARROW:
                own = e.at == (at[0], *at[2:], at[1]) if len(at) == 4 else False
                return own and e.target not in self.fixed and is_plain(e)
        return False

    def stores_zeros(self, e: Equation) -> bool:
        """Whether all readers of a copy accept zeros after its rows."""
        reads = [r for f in self.readers.get(e.target, []) for r in f.reads()]
        return all(r.pad in (None, 0.0) for r in reads if r.tensor == e.target)

    def pointwise(self, e: Equation) -> Places | None:
        """The dimensions of a pointwise equation over a convolution's results; None if it cannot be
        in planes."""
        if e.target in self.fixed or len(e.at) != 4 or not is_plain(e):
            return None
        found: set[tuple[Expr, ...]] = set()
        for read in e.reads():
            if read.tensor in self.flat:
                places = self.flat[read.tensor]
                found.add(tuple(read.at[d] for d in places))
                if read.pad is not None or not self.same_planes(read.tensor, e):
                    return None
        if len(found) != 1 or not is_pointwise(e.value):
            return None
        (names,) = found
        if {*names} != {*e.at}:
            return None
        for read in e.reads():
            inside = {n for n in map(Index, indices(read)) if n in names and n != names[1]}
            whole = read.pad is None and {*read.at} == {*e.at} and len(read.at) == 4
            floating = self.known.tensors[read.tensor].dtype in ("f32", NARROW)
            if inside and not (whole and floating):
                return None
        return tuple(e.at.index(n) for n in names)  # type: ignore[return-value]

    def same_planes(self, tensor: str, e: Equation) -> bool:
        """Whether an equation's target has the dimension sizes of a tensor that it reads, in any
        order."""
        sizes = (shape(self.known.tensors[t], {}) for t in (tensor, e.target))
        a, b = map(sorted, sizes)
        return a == b

    def extend_operand(self, tensor: str) -> bool:
        """Whether a convolution's operand can be stored in planes; records in `longer` what that
        needs."""
        e = self.spec.equation(tensor)
        if not self.stores_zeros(e):
            return False
        self.operands[tensor] = self.image(tensor, (0, 3, 1, 2))
        (source,) = e.sources()
        return source in self.flat or self.extend(source, (0, 1, 2, 3))

    def extend(self, tensor: str, places: Places) -> bool:
        """Whether a tensor can be computed with padded rows; records it, and the sources that its
        kernel computes."""
        if tensor in self.longer:
            return self.longer[tensor] == places
        if tensor in self.fixed or tensor in self.operands or tensor in self.flat:
            return False
        e = self.spec.equation(tensor)
        if not is_plain(e) or len(e.at) != 4 or any(f.accumulate for f in self.readers[tensor]):
            return False
        if not is_pointwise(e.value) and not isinstance(e.value, Reduce):
            return False
        if not all(
            r.pad is None for f in self.readers[tensor] for r in f.reads() if r.tensor == tensor
        ):
            return False
        if any(self.known.tensors[r.tensor].dtype not in ("f32", NARROW) for r in e.reads()):
            return False
        if any(not isinstance(n.high, Number) for n in _ranges(e)):
            return False
        self.longer[tensor] = places
        names = tuple(e.at[d] for d in places)
        for read in e.reads():
            if len(read.at) == 4 and {*read.at} == {*e.at} and read.pad is None:
                self.extend(read.tensor, tuple(read.at.index(n) for n in names))  # type: ignore[arg-type]
        return True

    def reads_well(self, e: Equation) -> bool:
        """Whether an equation outside the planes can read tensors in planes without an additional
        kernel."""
        if e.target in self.flat:
            return True
        if e.accumulate or any(r.pad is not None for r in e.reads() if r.tensor in self.flat):
            return False
        # As an epilogue it would be computed with the convolution.
        whole = [r for r in e.reads() if r.tensor in self.flat and {*r.at} <= {*e.at}]
        return not (whole and is_pointwise(e.value)) and not (
            isinstance(e.value, Reduce) and not _windowed(e)
        )


def _ranges(e: Equation) -> tuple[Range, ...]:
    return e.value.ranges if isinstance(e.value, Reduce) else ()


def _windowed(e: Equation) -> bool:
    """Whether a reduction runs along windows, not along whole images."""
    return any(len(indices(p)) > 1 for r in e.reads() for p in r.at)


class _Making:
    """Builds the equations of the rewritten spec, one after the other."""

    def __init__(self, chains: _Chains, aliases: dict[str, str]):
        self.chains, self.aliases, self.known = chains, aliases, chains.known
        self.equations: list[Equation] = []
        self.taken = {*self.known.tensors, *self.known.ranges}
        self.shapes = {name: shape(t, {}) for name, t in self.known.tensors.items()}
        self.images: dict[str, str] = {}  # by tensor with flat pixels: the view that shows its rows
        self.matrices: dict[str, str] = {}  # by padded copy: the view that flattens its pixels

    def take(self, e: Equation) -> None:
        """Adds an equation, rewritten to planes or to reads of them."""
        chains = self.chains
        if e.target in chains.convolutions:
            self._convolution(chains.convolutions[e.target])
        elif e.target in chains.flat:
            self._pointwise(e)
        elif e.target in chains.operands:
            self._operand(e)
        else:
            self._other(e)

    def _convolution(self, one: SameSize) -> None:
        e, plane = one.e, self.chains.planes[one.image]
        place = Index(fresh(f"{e.target}_t", self.taken))
        found = contraction(e)
        assert found is not None
        read = one.reading(self._matrix(one.x.tensor), place, plane)
        body = product(tuple(read if side == one.x else side for side in (found.a, found.b)))
        value = self._explicit(e, replace(e.reduce, body=body))
        self._add_flat(e.target, place, Index(one.names[1]), value)

    def _pointwise(self, e: Equation) -> None:
        chains, places = self.chains, self.chains.flat[e.target]
        place = Index(fresh(f"{e.target}_t", self.taken))
        batch, channel, row, column = (e.at[d] for d in places)
        split = chains.plane(e.target).split(place)
        names = {
            i.name: part
            for i, part in zip((batch, row, column), split, strict=True)
            if isinstance(i, Index)
        }

        def visit(expr: Expr) -> Expr:
            if not isinstance(expr, Read):
                return (
                    names.get(expr.name, expr) if isinstance(expr, Index) else rebuilt(expr, visit)
                )
            if expr.tensor in chains.flat:
                return Read(expr.tensor, (place, channel))
            whole = len(expr.at) == 4 and {*expr.at} == {*e.at}
            if not whole:
                return expr
            if expr.tensor in chains.operands:
                return Read(self._matrix(expr.tensor), (place, channel))
            pad = None if expr.tensor in chains.longer else 0.0
            return Read(expr.tensor, tuple(renamed(p, names) for p in expr.at), pad=pad)

        self._add_flat(e.target, place, channel, visit(e.value))

    def _operand(self, e: Equation) -> None:
        """Adds a padded copy; its pixels are one index if those of its source are."""
        plane = self.chains.plane(e.target)
        (read,) = e.reads()
        if read.tensor in self.chains.flat:
            place = Index(fresh(f"{e.target}_t", self.taken))
            _, row, column = plane.split(place)
            kept: Expr = Read(read.tensor, (place, e.at[3]))
            value = Apply("where", (plane.is_pixel(row, column), kept, Number(0.0)))
            self._add_flat(e.target, place, e.at[3], Cast(NARROW, value))
            self.matrices[e.target] = e.target
            return
        e = self._renamed(e, e.at[1:3])
        (read,) = e.reads()
        value = Apply("where", (plane.is_pixel(e.at[1], e.at[2]), read, Number(0.0)))
        batch, _, _, channels = self.shapes[e.target]
        size = (batch, plane.rows, plane.pitch, channels)
        self._add(replace(e, value=Cast(NARROW, value), sizes=tuple(map(Number, size))), size)

    def _other(self, e: Equation) -> None:
        """Adds an equation whose rows keep their length, or are padded."""
        chains = self.chains
        size = list(self.shapes[e.target])
        moved: set[str] = set()
        if e.target in chains.longer:
            places, plane = chains.longer[e.target], chains.plane(e.target)
            size[places[2]], size[places[3]] = plane.rows, plane.pitch
            e = self._renamed(e, tuple(e.at[d] for d in places[2:]))
            moved = {i for d in places[2:] for i in indices(e.at[d])}
        changed = {*chains.flat, *chains.operands, *chains.longer}
        if not moved and not changed & {*e.sources()}:
            self.equations.append(e)
            return
        # The ranges become explicit, because a read tensor can be longer than the range.
        value = self._explicit(e, self._seen(e.value, moved))
        self._add(replace(e, value=value, sizes=tuple(map(Number, size))), tuple(size))

    def _seen(self, expr: Expr, longer: set[str]) -> Expr:
        """Rewrites the reads of an expression. longer: indices that run over padded rows."""
        if not isinstance(expr, Read):
            return rebuilt(expr, lambda part: self._seen(part, longer))
        places = self.chains.flat.get(expr.tensor)
        made = expr
        if places is not None:
            batch, channel, row, column = (expr.at[d] for d in places)
            made = Read(self._image(expr.tensor), (batch, row, column, channel), pad=expr.pad)
        elif expr.tensor in self.chains.operands and len(self.shapes[expr.tensor]) == 2:
            made = Read(self._image(expr.tensor), expr.at, pad=expr.pad)
        beyond = bool(longer & {*indices(expr)})
        moved = any(longer & {*indices(p)} and not isinstance(p, Index) for p in expr.at)
        if beyond and made.pad is None and (moved or expr.tensor not in self.chains.longer):
            made = replace(made, pad=0.0)
        return made

    def _explicit(self, e: Equation, value: Expr) -> Expr:
        """Gives every reduced index its range explicitly, as the tensors read can be longer now."""
        if not isinstance(value, Reduce):
            return value
        said = {r.index for r in value.ranges}
        more = (Range(i, Number(0), self.known.ranges[i].high) for i in value.over if i not in said)
        return replace(value, ranges=(*value.ranges, *more))

    def _renamed(self, e: Equation, at: tuple[Expr, ...]) -> Equation:
        """Renames the indices of an equation that run further than other indices of their name."""
        names = {i: fresh(f"{e.target}_{i}", self.taken) for p in at for i in indices(p)}

        def name(index: str) -> str:
            return names.get(index, index)

        own = tuple(reindexed(p, name) for p in e.at)
        return replace(e, at=own, value=reindexed(e.value, name))

    def _add_flat(self, target: str, place: Index, channel: Expr, value: Expr) -> None:
        plane = self.chains.plane(target)
        assert isinstance(channel, Index)
        channels = int(self.known.ranges[channel.name].high.value)  # type: ignore[attr-defined]
        size = (plane.places, channels)
        self._add(Equation(target, (place, channel), value, sizes=tuple(map(Number, size))), size)

    def _add(self, e: Equation, size: tuple[int, ...]) -> None:
        self.equations.append(e)
        self.shapes[e.target] = size

    def _image(self, tensor: str) -> str:
        """The view that shows the rows of a tensor with flat pixels."""
        if tensor not in self.images:
            plane = self.chains.plane(tensor)
            size = (plane.image.batch, plane.rows, plane.pitch, self.shapes[tensor][1])
            self.images[tensor] = self._shown(tensor, "image", size)
        return self.images[tensor]

    def _matrix(self, tensor: str) -> str:
        """The view that flattens the pixels of a padded copy."""
        if tensor not in self.matrices:
            plane = self.chains.plane(tensor)
            self.matrices[tensor] = self._shown(
                tensor, "flat", (plane.places, self.shapes[tensor][3])
            )
        return self.matrices[tensor]

    def _shown(self, tensor: str, how: str, size: tuple[int, ...]) -> str:
        name = fresh(f"{tensor}_{how}", self.taken)
        at = tuple(Index(fresh(f"{name}_d{d}", self.taken)) for d in range(len(size)))
        self._add(view(name, at, size, tensor, self.shapes[tensor]), size)
        self.aliases[name] = tensor
        return name
