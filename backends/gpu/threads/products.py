"""Lowers matmuls: operands from shared memory or registers, a loop over K, and the result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

from backends.backend import BackendError
from backends.gpu import tile as of
from backends.gpu.layout.layout import Layout
from backends.gpu.layout.swizzle import Swizzle
from backends.gpu.products import summed_in
from backends.gpu.threads import thread as to
from backends.gpu.threads.distribution import Spread, binary, replicated
from backends.gpu.threads.expressions import rewritten
from backends.gpu.threads.facts import Facts, Matmul, Operand, bare
from backends.gpu.threads.lower import Lowering
from backends.gpu.threads.owners import Owners
from backends.gpu.threads.plans import PAIRED, PANEL_BYTES, Plan
from backends.gpu.tile import Name
from backends.gpu.values import product, typed
from ir.nest.nest import Rows
from ir.spec import DTYPES, Apply, Expr, Number

UNROLLED = 8  # issues along K up to which the loop is unrolled
ROW_BYTES = 16  # padding of rows without swizzle, which avoids bank conflicts along columns
MATRIX_WARP_BITS = 5  # of a warp with ldmatrix; a wavefront of 64 has no such instruction


class Matmuls(Lowering):
    """Lowering with matmuls."""

    def __init__(
        self,
        launch: of.Launch,
        facts: Facts,
        owners: Owners,
        tiles: Mapping[str, int],
        sizes: Mapping[str, float],
        plans: Mapping[int, Plan],
        anchored: frozenset[int],
    ):
        super().__init__(launch, facts, owners, tiles, sizes)
        self.plans = plans
        self.anchored = anchored  # matmuls whose results have the distribution of their plan
        self.stages: dict[Name, Expr] = {}  # the stage from which each staged variable is read
        self.depths: dict[Name, int] = {}  # stages of pipelined variables
        self.loops = 0
        # Results of matmuls that are still to be moved one iteration later
        self.later: set[Name] = set()
        self.sooner: set[Name] = (
            set()
        )  # of these, those whose preceding matmul is to run one iteration ahead

    def statement(self, s: of.Statement) -> None:
        """Appends the statements for one statement of the tile program."""
        if isinstance(s, of.Assign) and s.name in self.facts.at_use:
            return
        if isinstance(s, of.Assign) and (matmul := self.facts.matmuls.get(id(s))):
            self.matmul(matmul, self.plans[id(s)], id(s) in self.anchored)
        else:
            super().statement(s)

    def matmul(self, m: Matmul, plan: Plan, anchored: bool) -> None:
        """A matmul, with or without accumulation onto its variable."""
        held = self.variable(m.name)
        batch = tuple(self.axis(i, replicated()) for i in m.batch)
        axes = (*batch, self.joined(m.m, plan.c[0]), self.joined(m.n, plan.c[1]))
        plain = len(m.m) == len(m.n) == 1 and len(m.batch) < 2
        if anchored and plain:
            to_name = held
        else:
            to_name = self.temporary(summed_in(m.dtype), axes)
        if anchored and not plain and m.adds:
            self.regroup(held, to_name, m, gather=True)
        elif not m.adds or not anchored:
            self.put(to.Each(to_name, typed(0.0, self.fragments[to_name].dtype)))
        self.multiply(m, plan, to_name, batch)
        if to_name == held:
            return
        if anchored:
            self.regroup(to_name, held, m, gather=False)
            return
        own = self.temporary(summed_in(m.dtype), self.fragments[held].axes)
        self.convert(to_name, own, (m.batch, m.m, m.n))
        value: Expr = to.Element(own, tuple(a.index for a in self.fragments[held].axes))
        if m.adds:
            value = of.Joined("sum", to.Element(held, self.facts.indices(held)), value, False)
        self.put(to.Each(held, value))

    def multiply(self, m: Matmul, plan: Plan, to_name: Name, batch: tuple[to.Axis, ...]) -> None:
        """The loop over K."""
        if plan.overlaps:
            self.later.add(to_name)
        if plan.ahead:
            self.sooner.add(to_name)
        inner = _name(m.k)
        registers = self.in_registers(m.a, plan)
        along = m.k[-1] if plan.k_major else ""
        a_tile = None if registers else self.operand(m.a, plan, along)
        b_tile = self.operand(m.b, plan, along)
        if plan.warpgroup and plan.instruction:
            self.fly(to_name)
            stages = (None if registers else self.stage(m.a), self.stage(m.b))
            a_side, shape = registers or a_tile, plan.warpgroup
            self.put(
                to.WarpgroupMultiply(to_name, a_side, b_tile, plan.instruction, shape, *stages)  # type: ignore[arg-type]
            )
            return
        self.loops += 1
        step = self.fragment(Name("issue", inner, copy=self.loops), "i32")
        depth = Number(plan.depth)
        a_depth, b_depth = (s.axis(inner, depth, self.threads) for s in (plan.a[1], plan.b[0]))
        first = None
        with self.apart() as body:
            if registers is not None:
                a = registers
                count = prod(e for e, _ in plan.a[1].modes)
                issue = Apply("floordiv", (to.Element(step), depth))
                first = Apply("mul", (issue, Number(count)))
            else:
                axes = (*batch, self.joined(m.m, plan.a[0]), a_depth)
                a = self.part(m.a, a_tile, axes, step, plan)  # type: ignore[arg-type]
            axes = (*batch, b_depth, self.joined(m.n, plan.b[1]))
            b = self.part(m.b, b_tile, axes, step, plan)
            if function := self.facts.at_use.get(bare(m.b)):  # type: ignore[arg-type]
                b = self.applied(function, b, m.dtype)
            scales = self.scales(m, plan, batch, step)
            self.put(to.Multiply(to_name, a, b, plan.instruction, first, *scales))
        width = self.extent(m.k)
        few = isinstance(width, Number) and width.value <= UNROLLED * plan.depth
        unrolled = registers is not None or few
        self.put(to.Loop(step, Number(0), width, plan.depth, tuple(body), unrolled))

    def part(
        self, operand: Operand, tile: Name, axes: tuple[to.Axis, ...], step: Name, plan: Plan
    ) -> Name:
        """The part of an operand for one issue, loaded from its tile."""
        inner = _name(operand.k)
        name, by = (
            self.temporary(self.shared[tile].dtype, axes),
            self.by(tile, operand, inner, plan),
        )
        at = ((inner, to.Element(step)),)
        self.fetch(to.SharedLoad(name, tile, self.stage(operand), at, by))
        return name

    def scales(
        self, m: Matmul, plan: Plan, batch: tuple[to.Axis, ...], step: Name
    ) -> tuple[Name, ...]:
        """The scales of both operands for one issue."""
        found = []
        for operand, spreads in zip(m.scales, plan.scales):
            tile, k = self.operand(operand, plan, ""), _name(operand.k)
            count = max(s.span for s, g in zip(spreads, operand.groups[-2:]) if g == operand.k)
            axes = tuple(
                spread.axis(k, Number(count), self.threads)
                if group == operand.k
                else self.joined(group, spread)
                for spread, group in zip(spreads, operand.groups[-2:])
            )
            begins = Apply("floordiv", (to.Element(step), Number(plan.depth // count)))
            held = self.temporary(self.shared[tile].dtype, (*batch, *axes))
            self.fetch(to.SharedLoad(held, tile, self.stage(operand), ((k, begins),)))
            found.append(held)
        return tuple(found)

    def fly(self, to_name: Name) -> None:
        """Lets directly preceding matmuls onto the same result stay in flight with it."""
        row = 0
        while row < len(self.found) and _adds_to(self.found[-1 - row], to_name):
            row += 1
        for number in range(row):
            s = self.found[number - row]
            self.found[number - row] = replace(s, pending=number + 1)  # type: ignore[call-arg]

    def applied(self, function: tuple[Name, Expr], held: Name, dtype: str) -> Name:
        """A function of a loaded variable, applied to a fragment with a part of it."""
        axes = self.fragments[held].axes
        element = to.Element(held, tuple(a.index for a in axes))
        name = self.temporary(dtype, axes)
        load, value = function

        def change(e: Expr) -> Expr | None:
            return element if isinstance(e, to.Element) and e.name == load else None

        self.put(to.Each(name, rewritten(self.element(value, {}), change)))
        return name

    def fetch(self, s: to.SharedLoad) -> None:
        """Loads the part of an operand for one issue."""
        self.put(s)

    # -- operands -----------------------------------------------------------------------------

    def source(self, operand: Operand) -> Name | None:
        """The variable that an operand is, or from which the matmul computes it."""
        name = bare(operand)
        return self.facts.at_use[name][0] if name in self.facts.at_use else name

    def in_registers(self, operand: Operand, plan: Plan) -> Name | None:
        """The fragment of operand A where threads hold it in the instruction's layout, else None."""
        if plan.instruction is None or not plan.instruction.a or len(operand.groups) > 2:
            return None
        if self.source(operand) in self.facts.staged or any(len(g) > 1 for g in operand.groups):
            return None
        held = {a.index: a for a in self.axes(operand.value, {})}
        for (index,), spread in zip(operand.groups, plan.a, strict=True):
            wanted = self.axis(index, spread)
            if _whole(held[index], self.owners.widths[index]) != _whole(
                wanted, self.owners.widths[index]
            ):
                return None
        return self.in_order(self.computed(operand), operand)

    def in_order(self, name: Name, operand: Operand) -> Name:
        """A fragment with its axes in the order of an operand's groups, in the same registers."""
        axes, wanted = self.fragments[name].axes, [i for g in operand.groups for i in g]
        order = tuple(sorted(axes, key=lambda a: wanted.index(a.index)))
        if order == axes:
            return name
        made = self.temporary(self.fragments[name].dtype, order)
        self.put(to.Each(made, to.Element(name, tuple(a.index for a in axes))))
        return made

    def computed(self, operand: Operand) -> Name:
        """A fragment of an operand that is not loaded only for it."""
        if (name := bare(operand)) is not None:
            return self.variable(name)
        axes = self.axes(operand.value, {})
        name = self.temporary(self.typing.dtype(operand.value), axes)
        self.put(to.Each(name, self.element(operand.value, {a.index: a for a in axes})))
        return name

    def operand(self, operand: Operand, plan: Plan, along: str) -> Name:
        """The shared memory tile of an operand, with an axis for each of its groups. along: the
        contiguous axis of a computed operand; empty: that of its fragment."""
        name = self.source(operand)
        if name is None or name not in self.facts.staged:
            held = self.computed(operand)
            own = Name("shared", held.stem, copy=held.copy)
            if held in self.depths:  # its name is taken by the tile of its copies
                own = replace(own, dim=1)
            tile = self.tile(own, held, operand, plan, along)
            if not self.stands(tile, held):
                copies = self.copies(self.fragments[held].axes)
                self.put(to.SharedStore(tile, held, copies=copies))
        else:
            tile = Name("shared", name.stem, copy=name.copy)
        return self.view(tile, operand)

    def stands(self, tile: Name, held: Name) -> bool:
        """Whether a tile still holds what this block stored from a fragment for another matmul."""
        for s in reversed(self.found):
            match s:
                case to.SharedStore(name, source) if name == tile:
                    return source == held
                case to.Loop() | to.Guard():
                    return False
                case _ if getattr(s, "name", None) == held:
                    return False
        return False

    def stage(self, operand: Operand) -> Expr | None:
        """The stage of an operand's tile that is read."""
        name = self.source(operand)
        return self.stages.get(name) if name in self.facts.staged else None

    def tile(
        self,
        name: Name,
        held: Name,
        operand: Operand,
        plan: Plan,
        along: str = "",
        stages: int = 1,
    ) -> Name:
        """A shared memory tile for an operand. along: its contiguous axis; empty: that of its fragment."""
        if name in self.shared:
            return name
        axes = self.facts.indices(held) if held in self.typing.known else ()
        if not axes:
            axes = tuple(a.index for a in self.fragments[held].axes)
        order = order_of(operand, along or axes[-1])
        dtype = self.typing.known[held][0] if held in self.typing.known else ""
        dtype = dtype or self.fragments[held].dtype
        region = f"{name.stem}_{name.copy}" if name.copy else name.stem
        region += "_operand" if name.dim > 0 else ""
        extents = tuple(self.width(i) for i in order)
        row = next(g for g in operand.groups if order[-1] in g)
        made = to.Shared(name, dtype, order, extents, region, stages, len(row))
        size, decided = DTYPES[dtype], self.rows_of(held)
        if decided is not None and decided.padding and plan.warpgroup:
            raise BackendError(
                "emit",
                f"`{held.stem}` is read by {plan.instruction.name}, which reads panels alone",  # type: ignore[union-attr]
            )
        elif plan.instruction is None and decided is None:
            made = replace(made, padding=ROW_BYTES // size)
        else:
            pairs = size == 4 and row == operand.k and plan.a[1] == PAIRED
            made = self.in_rows(made, held, 32 if pairs else 16)
        self.shared[name] = made
        return name

    def rows_of(self, held: Name) -> Rows | None:
        """The schedule's swizzle or padding for the tile of a loaded variable; None where it decides none."""
        return self.facts.rows.get(held.stem) if held in self.facts.loads else None

    def panel_of(self, held: Name | None, row: tuple[str, ...], dtype: str) -> int:
        """Elements of a panel of a tile whose rows have these axes. held: the variable in it."""
        decided = self.rows_of(held) if held is not None else None
        whole = prod(self.owners.widths[i] for i in row) * DTYPES[dtype]
        if decided is not None and decided.panel > whole:
            raise BackendError(
                "emit",
                f"a row of `{held.stem}` has {whole} bytes, less than panels of {decided.panel}",  # type: ignore[union-attr]
            )
        return (
            min(decided.panel if decided and decided.panel else PANEL_BYTES, whole) // DTYPES[dtype]
        )

    def in_rows(self, tile: to.Shared, held: Name, part: int = 16) -> to.Shared:
        """A tile with padding where the schedule decides it, else in panels with a swizzle of parts."""
        size, decided = DTYPES[tile.dtype], self.rows_of(held)
        if decided is not None and decided.padding:
            return replace(tile, padding=decided.padding // size)
        panel = self.panel_of(held, tile.axes[-tile.row :], tile.dtype)
        return replace(tile, padding=0, panel=panel, swizzle=swizzle_of(panel, size, part))

    def view(self, tile: Name, operand: Operand) -> Name:
        """A view of the same memory with the axes of each group as one."""
        if all(len(g) == 1 for g in operand.groups):
            return tile
        held = self.shared[tile]
        groups = sorted((g for g in operand.groups if g), key=lambda g: held.axes.index(g[0]))
        name = replace(tile, dim=0)
        own = dict(zip(held.axes, held.extents, strict=True))
        # It also has the rows of other tiles
        wider = any(own[i] != self.width(i) for i in held.axes)
        extents = tuple(
            Number(prod(int(own[i].value) for i in g)) if wider else self.extent(g)  # type: ignore[attr-defined]
            for g in groups
        )
        axes = tuple(map(_name, groups))
        self.shared[name] = replace(held, name=name, axes=axes, extents=extents, row=1)
        return name

    def by(self, tile: Name, operand: Operand, inner: str, plan: Plan) -> str:
        """The instruction that loads a fragment from a tile: ldmatrix for tiles that are contiguous
        along an axis of the matmul, except a batch axis."""
        held = self.shared[tile]
        rows = map(_name, operand.groups[-2:])
        if plan.instruction is None or DTYPES[held.dtype] != 2 or held.axes[-1] not in rows:
            return ""
        if self.owners.warp_bits != MATRIX_WARP_BITS:
            return ""
        return "matrix" if held.axes[-1] == inner else "transposed"

    # -- axes ---------------------------------------------------------------------------------

    def joined(self, group: tuple[str, ...], spread: Spread) -> to.Axis:
        """Several axes as one."""
        self.widths.setdefault(_name(group), self.extent(group))
        return self.axis(_name(group), spread)

    def extent(self, group: tuple[str, ...]) -> Expr:
        """Elements along several axes."""
        parts = [self.width(i) for i in group]
        if all(isinstance(p, Number) for p in parts):
            return Number(prod(int(p.value) for p in parts if isinstance(p, Number)))
        return product(parts)

    def regroup(self, source: Name, name: Name, m: Matmul, gather: bool) -> None:
        """Regroups the registers of a result under the axes of its variable, or the other way round."""
        groups = tuple((_name(g), g) for g in (m.m, m.n) if len(g) > 1)
        self.put(to.Regroup(name, source, groups, split=not gather))

    def convert(self, source: Name, name: Name, groups: tuple[tuple[str, ...], ...]) -> None:
        """Converts a fragment to another distribution through shared memory."""
        given, wanted = self.fragments[source], self.fragments[name]
        axes, region = {a.index: a for a in wanted.axes}, f"converted_{name.copy}"
        own = Name("shared", "converted", copy=name.copy)
        self.exchanged(own, given.dtype, (axes[i] for g in groups for i in g), region)
        whole = replace(own, dim=0)
        self.exchanged(whole, given.dtype, given.axes, region)
        self.put(to.SharedStore(whole, source, copies=self.copies(given.axes)))
        self.put(to.SharedLoad(name, own))


def _adds_to(s: to.Statement, name: Name) -> bool:
    return isinstance(s, to.WarpgroupMultiply) and s.to == name


def _name(group: tuple[str, ...]) -> str:
    return "_".join(group)


def swizzle_of(panel: int, element_bytes: int, part: int = 16) -> Swizzle | None:
    """The swizzle that permutes the parts of a panel's rows, so that the same part of 8 rows is in
    different banks. part: bytes of one; 32, for 4 rows, where each of 4 threads reads two elements
    of a row."""
    bits, base = (panel * element_bytes // part).bit_length() - 1, part.bit_length() - 1
    return Swizzle(bits, base, 7 - base).of_elements(element_bytes) if bits > 0 else None


def order_of(operand: Operand, along: str) -> tuple[str, ...]:
    """The axes of an operand's tile: groups stay together, and the contiguous one comes last."""
    groups = sorted(operand.groups, key=lambda g: along in g)
    return tuple(i for g in groups for i in g)


def _whole(axis: to.Axis, width: int) -> tuple[Layout, tuple[tuple[int, int], ...]]:
    """The thread layout of an axis and its register modes, with repetitions as a mode."""
    modes = axis.register.flat if axis.register.size > 1 else ()
    repeats = -(-width // axis.span)
    whole = (*modes, (repeats, axis.span)) if repeats > 1 else modes
    return axis.thread, binary(whole)
