"""Partitions one large spec into a network of kernels.

The choice of equations that share a kernel changes no result. The rules here are nearly always
right: pointwise equations join their neighbours, epilogues join the matmul, and norms over short
rows are one pass. A kernel that the machine cannot lower is divided.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from ir.errors import KernelError
from ir.intervals import ranged
from ir.literal import literal
from ir.network import Buffer, Network, Outside, Pause, Step
from ir.partition.canonical import canonical
from ir.partition.chains import chains
from ir.partition.choices import ONE, Choices
from ir.partition.concatenated import through_concatenations
from ir.partition.direct import with_direct_products
from ir.partition.empty import is_empty, with_empty, without_empty
from ir.partition.expanded import through_expansions
from ir.partition.gathers import through_gathers
from ir.partition.groups import (
    HEAVY,
    MAP,
    ROWS,
    Group,
    begun,
    beside,
    beside_rows,
    joined,
    kind_of,
    recurring,
    reordering,
    whole_chain,
)
from ir.partition.heads import with_split_heads
from ir.partition.part_statistics import with_part_statistics
from ir.partition.parts_in_place import with_parts_in_place
from ir.partition.periods import with_periods_apart
from ir.partition.phase_taps import with_whole_tiles
from ir.partition.phases import with_phases_apart
from ir.partition.positions import with_plain_positions
from ir.partition.prologues import with_prologues
from ir.partition.repeated import once
from ir.partition.reshaped import with_flat_epilogues
from ir.partition.reverse_scans import with_reverse_scans
from ir.partition.row_sums import with_reductions_by_rows
from ir.partition.seen_otherwise import without_views_between
from ir.partition.shifted_scans import with_shifted_scans
from ir.partition.side_by_side import side_by_side
from ir.partition.squeezed import squeezed
from ir.partition.terms import Terms
from ir.partition.variances import with_variances_in_parts
from ir.partition.views import root, through_views
from ir.partition.weights import with_plain_weights
from ir.recurrence import ordered, stepped
from ir.sizes import shape
from ir.spec import (
    Equation,
    Read,
    Spec,
)
from ir.verify import facts

Lowers = Callable[[Spec], object]  # raises KernelError for a kernel that cannot be lowered
Takes = Callable[[Spec], float]  # microseconds of a kernel that can be lowered, by an estimate


def partition(
    spec: Spec,
    sizes: Mapping[str, int],
    aliases: Mapping[str, str] | None = None,
    lowers: Lowers = lambda _: None,
    outside: Sequence[Outside] = (),
    ahead: Callable[[Sequence[Spec]], object] = lambda _: None,
    takes: Takes | None = None,
    choices: Choices | None = None,
) -> Network:
    """A network that computes a spec at one set of sizes.

    aliases: views that show another tensor's elements in the same order under another shape. No
        kernel computes them.
    lowers: called once for each kernel. A kernel that it refuses is divided; if that kernel has a
        single equation, its error is raised.
    outside: calls that no kernel makes, each after the calls that it needs. No kernel has equations
        from both before and after such a call.
    ahead: gets all kernels that `lowers` will be called with, before it is called. Kernels of
        divided groups are not among them.
    takes: the time of a kernel. Two contractions with exponentials between them share one kernel if
        that takes less time than several kernels. Without `takes` they never do.
    choices: overrides of the partition's choices; it records those that came up.
    """
    whole = literal(spec, sizes)
    spec = without_empty(whole)
    _require_elements(whole, outside)
    there = {e.target for e in spec.equations}
    aliases = {a: b for a, b in (aliases or {}).items() if a in there}
    flat = through_gathers(once(through_views(spec, aliases), aliases), aliases)
    flat = with_shifted_scans(through_concatenations(flat, aliases), aliases)
    flat = squeezed(with_reverse_scans(flat, aliases))
    flat, aliases = with_phases_apart(flat, aliases)
    flat = with_whole_tiles(flat)
    flat, aliases = with_periods_apart(flat, aliases)
    flat = with_part_statistics(with_variances_in_parts(flat), aliases)
    flat = through_expansions(flat, aliases)
    flat = with_prologues(flat, aliases)
    flat, aliases = without_views_between(flat, aliases)
    flat, aliases = with_flat_epilogues(flat, aliases)
    # `once` can replace the tensor that a view shows by an equal earlier one.
    shown = {e.target: e.sources()[0] for e in flat.equations if e.target in aliases}
    flat, aliases = with_split_heads(flat, aliases | shown)
    flat, aliases = with_direct_products(flat, aliases)
    flat = with_reductions_by_rows(flat, aliases)
    flat = with_plain_positions(with_plain_weights(flat, aliases))
    made = _Partition(spec, flat, aliases | _copies(flat), lowers, outside)
    network = made.network(ahead, takes, choices or Choices(asked=False))
    return network if spec is whole else with_empty(network, whole)


def _require_elements(spec: Spec, outside: Sequence[Outside]) -> None:
    """Raises KernelError if an outside call reads or fills an empty tensor."""
    empty = {t.name for t in (*spec.inputs, *spec.outputs) if is_empty(t)}
    for one in outside:
        if names := empty & {*one.inputs, *one.outputs}:
            raise KernelError(
                f"`{one.name}` is left to PyTorch, and its tensor `{min(names)}` has no elements",
                allowed="sizes of 1 and more",
            )


def _copies(spec: Spec) -> dict[str, str]:
    """Equations that copy a tensor unchanged. Their targets become aliases of the existing
    memory."""
    tensors = facts(spec).tensors
    return {
        e.target: e.value.tensor
        for e in spec.equations
        if isinstance(e.value, Read)
        and not e.accumulate
        and e.value.pad is None
        and e.value.at == e.at
        and len(set(e.indices)) == len(e.at)
        and tensors[e.target] == replace(tensors[e.value.tensor], name=e.target)
    }


class _Partition:
    """One partition of `spec`."""

    def __init__(
        self,
        spec: Spec,
        flat: Spec,
        aliases: Mapping[str, str],
        lowers: Lowers,
        outside: Sequence[Outside],
    ):
        self.spec, self.aliases, self.lowers = spec, aliases, lowers
        self.flat = flat  # the spec without views and dimensions of size 1
        self.outside, self.stages = outside, stages(flat, outside)
        self.facts = ranged(flat)
        self.place = {e.target: n for n, e in enumerate(ordered(flat))}
        self.seen: dict[Spec, KernelError | None] = {}
        # By the `id` of each equation. The equations are kept with the step, so that no id is
        # reused.
        self.steps: dict[tuple[int, ...], tuple[list[Equation], Step]] = {}
        self.outputs = {self.root(t.name) for t in spec.outputs}
        self.terms = Terms(ordered(flat), self.facts, aliases, self.outputs)
        self.readers: dict[str, set[str]] = {}  # by tensor in memory: the targets that read it
        for e in flat.equations:
            for source in e.sources():
                self.readers.setdefault(self.root(source), set()).add(e.target)

    def network(
        self, ahead: Callable[[Sequence[Spec]], object], takes: Takes | None, choices: Choices
    ) -> Network:
        """The network of all groups in order of stage, with refused groups divided."""
        groups: list[Group] = []
        wanted = [
            part for group in self.groups() for part in self.without_reordering(group, choices)
        ]
        whole = self.whole_chains(wanted) if takes else []
        tried = (*wanted, *(group for _, group in whole))
        ahead(tuple(dict.fromkeys(self.kernel(group).spec for group in tried)))
        for members, group in whole:
            parts = [wanted[n] for n in members]
            if takes and self.had(group) and all(map(self.had, parts)):
                faster = partial(self.faster, group, parts, takes)
                if choices(self.choice(group), faster):
                    for n in members:
                        wanted[n] = Group(MAP)
                    wanted[members[-1]] = group
        for group in (g for g in wanted if g.equations):
            groups += self.chosen(group, choices) if self.had(group) else self.parts(group)
        return self.in_place(self.assembled(sorted(groups, key=self.stage)), ahead)

    def in_place(self, network: Network, ahead: Callable[[Sequence[Spec]], object]) -> Network:
        """Lets kernels store the operands of concatenations in place, so that concatenations move
        no data.

        If a kernel is refused that way, only those are stored in place whose kernels lower.
        """
        wanted = with_parts_in_place(network, lambda _: True)
        new = tuple(k for k in wanted.kernels() if k not in self.seen)
        if not new:
            return wanted
        ahead(new)
        done = all(map(self.lowered, new))
        return wanted if done else with_parts_in_place(network, self.lowered)

    def whole_chains(self, groups: Sequence[Group]) -> list[tuple[list[int], Group]]:
        """The chains that one kernel could compute: the groups that compute each now, and the
        single group."""
        found = []
        home = {t: n for n, group in enumerate(groups) for t in group.at}
        for chain in chains(self.flat, self.aliases):
            own = {*chain.members, *chain.after}
            if not all(t in home for t in chain.members):
                continue  # a member is only a view
            members = sorted({home[t] for t in chain.members})
            *before, last = (groups[n] for n in members)
            inside = all(g.targets <= own for g in before)
            if not inside or len({self.stage(g) for g in (*before, last)}) > 1:
                continue
            equations = [self.flat.equation(t) for n in members for t in groups[n].at]
            equations.sort(key=lambda e: self.place[e.target])
            if len(members) > 1 and (group := whole_chain(equations, self.facts)):
                found.append((members, group))
        return found

    def faster(self, whole: Group, parts: Sequence[Group], takes: Takes) -> bool:
        """Whether one kernel takes less time than several."""
        return takes(self.kernel(whole).spec) < sum(takes(self.kernel(g).spec) for g in parts)

    def choice(self, group: Group) -> str:
        """The name of the choice whether a group is one kernel."""
        return ONE + self.kernel(group).spec.name

    def chosen(self, group: Group, choices: Choices) -> list[Group]:
        """The group, or, if so chosen, its heavy equation and its epilogue as separate groups."""
        name = self.choice(group)
        if choices.given.get(name, not choices.asked):
            return [group]
        parts = self.without_epilogue(group)
        return [group] if not parts or choices(name, lambda: True) else parts

    def without_reordering(self, group: Group, choices: Choices) -> list[Group]:
        """The group, or a pooling and the permutation of its results as separate groups, unless
        chosen otherwise."""
        cut = reordering(group, self.facts)
        if cut is None or choices(self.choice(group), lambda: False):
            return [group]
        return self.cut(group, cut)

    def cut(self, group: Group, place: int) -> list[Group]:
        """Splits a group at a place. Equations of either half that do not join form further
        groups."""
        parts: list[Group] = []
        for n, one in enumerate(group.equations):
            e = self.flat.equation(one.target)
            if n in (0, place) or not self.join(parts[-1], e):
                parts.append(begun(e, self.facts))
        return parts

    def without_epilogue(self, group: Group) -> list[Group]:
        """Splits a group into its heavy equation with the prologue, and its epilogue.

        Empty if the group has no such parts, or if they cannot be lowered.
        """
        if group.kind != HEAVY:
            return []
        equations = [self.flat.equation(e.target) for e in group.equations]
        heavy = [n for n, e in enumerate(equations) if kind_of(e, self.facts) == HEAVY]
        if len(heavy) != 1 or heavy[0] == len(equations) - 1:
            return []
        parts = self.cut(group, heavy[0] + 1)
        return parts if all(map(self.had, parts)) else []

    def root(self, tensor: str) -> str:
        """The tensor in memory that an alias shows, or the tensor itself if it is no alias."""
        return root(tensor, self.aliases)

    def stage(self, group: Group) -> int:
        """The number of consecutive outside calls that must finish before a group runs."""
        return self.stages[group.equations[0].target]

    def groups(self) -> list[Group]:
        """The groups of the equations. Within a stage each group comes after those that it
        needs."""
        groups: list[Group] = []
        home: dict[str, int] = {}
        for e in ordered(self.flat):
            if e.target in self.aliases or e.target in home:
                continue
            together = stepped(self.flat, e.target)
            if together:
                members = [self.flat.equation(t) for t in together.targets]
                groups.append(recurring(members, self.facts))
                home |= {t: len(groups) - 1 for t in together.targets}
                continue
            now = self.stages[e.target]
            homes = sorted(
                {
                    home[r]
                    for s in e.sources()
                    if (r := self.root(s)) in home and self.stages[r] == now
                }
            )
            if not homes or not self.placed(groups, homes, e):
                n = self.sharing(groups, homes[-1] + 1 if homes else 0, e)
                if n == len(groups):
                    groups.append(begun(e, self.facts))
                homes = [n]
            home |= dict.fromkeys(groups[homes[-1]].targets | {e.target}, homes[-1])
        left = [g for g in groups if g.equations]
        return side_by_side(left, self.members, self.ready, self.facts)

    def members(self, group: Group) -> list[Equation]:
        """The equations of a group, with the names of the spec."""
        return [self.flat.equation(t) for t in group.at]

    def ready(self, e: Equation) -> bool:
        """Whether everything that an equation reads exists before any kernel runs."""
        computed = {self.root(s) for s in e.sources()} & self.place.keys()
        return not computed and not self.stages[e.target] and not e.accumulate

    def placed(self, groups: list[Group], homes: Sequence[int], e: Equation) -> bool:
        """Adds an equation to the last group that it reads from; returns whether it fits.

        The other maps that it reads join the same group where they can.
        """
        *others, last = homes
        made = groups[last]
        taken: list[int] = []
        for n in others:
            maps = [self.flat.equation(t) for t in groups[n].at]
            # Moving a map to the last group is legal only if no group in between reads it.
            if groups[n].kind == MAP and not self.read(groups[n], groups[n + 1 : last + 1]):
                wider = beside(made, maps, self.facts)
                made, taken = (wider, [*taken, n]) if wider else (made, taken)
        if not taken or not self.join(made, e):
            return self.join(groups[last], e)
        made.equations.sort(key=lambda one: self.place[one.target])
        groups[last] = made
        for n in taken:
            # An empty group keeps the numbers of the other groups valid.
            groups[n] = Group(MAP)
        return True

    def sharing(self, groups: Sequence[Group], first: int, e: Equation) -> int:
        """Adds an equation to the last group from `first` on that reduces the same tensor; returns
        its number.

        Returns the number of a new group if there is none.
        """
        for n in range(len(groups) - 1, first - 1, -1):
            group = groups[n]
            if group.kind == ROWS and self.stage(group) == self.stages[e.target]:
                shown = {self.root(s) for s in e.sources() if s in self.aliases}
                if not shown & group.targets and beside_rows(group, e, self.facts):
                    return n
        return len(groups)

    def read(self, group: Group, later: Sequence[Group]) -> bool:
        """Whether one of the groups `later` reads what `group` computes."""
        sources = {self.root(s) for g in later for e in g.equations for s in e.sources()}
        return bool(sources & group.targets)

    def join(self, group: Group, e: Equation) -> bool:
        """Adds an equation to a group; returns whether it fits.

        A tensor that the equation reads through a view must already be in memory, so a group that
        computes that tensor does not take it.
        """
        shown = {self.root(s) for s in e.sources() if s in self.aliases}
        if shown & group.targets or self.terms.belongs_later(group, e):
            return False
        return joined(group, e, self.facts)

    def parts(self, group: Group) -> list[Group]:
        """Divides a group whose kernel is refused into groups whose kernels lower.

        Raises the error if the kernel of a single equation is refused.
        """
        if len(group.equations) == 1 or stepped(self.flat, group.equations[0].target):
            raise self.seen[self.kernel(group).spec] or AssertionError("it lowers")
        made: list[Group] = []
        for e in (self.flat.equation(e.target) for e in group.equations):
            if made and (wider := self.widened(made[-1], e)):
                made[-1] = wider
                continue
            alone = begun(e, self.facts)
            if not self.had(alone):
                raise self.seen[self.kernel(alone).spec] or AssertionError("it lowers")
            made.append(alone)
        return made

    def widened(self, group: Group, e: Equation) -> Group | None:
        """A group with one more equation, or None if its kernel is refused."""
        copy = group.copy()
        reads = any(s in group.targets for s in e.sources())
        return copy if reads and self.join(copy, e) and self.had(copy) else None

    def had(self, group: Group) -> bool:
        """Whether the kernel of a group lowers."""
        return self.lowered(self.kernel(group).spec)

    def lowered(self, spec: Spec) -> bool:
        """Whether a kernel lowers; each is tried once."""
        if spec not in self.seen:
            try:
                self.lowers(spec)
                self.seen[spec] = None
            except KernelError as error:
                self.seen[spec] = error
        return self.seen[spec] is None

    def kernel(self, group: Group) -> Step:
        """The step of a group. Its names depend on the group alone, so equal groups have equal
        specs."""
        key = tuple(map(id, group.equations))
        if key not in self.steps:
            self.steps[key] = list(group.equations), self._step(group)
        return self.steps[key][1]

    def _step(self, group: Group) -> Step:
        own = group.targets
        stored = [
            t
            for t in (e.target for e in group.equations)
            if t in self.outputs or self.readers.get(t, set()) - own
        ]
        inputs = list(
            dict.fromkeys(s for e in group.equations for s in e.sources() if s not in own)
        )
        spec = canonical(self.facts, group, inputs, stored)
        return Step(spec, tuple(map(self.root, inputs)), tuple(stored))

    def assembled(self, groups: Sequence[Group]) -> Network:
        """The network of the final groups: steps, buffers, outputs and pauses."""
        steps = tuple(self.kernel(g) for g in groups)
        tensors = {t.name: t for t in (*self.spec.inputs, *self.spec.outputs)}
        given = [t.name for t in self.spec.inputs]
        filled = {name for o in self.outside for name in o.outputs}
        buffers = []
        for name in dict.fromkeys((*given, *(o for s in steps for o in s.outputs))):
            t = tensors.get(name) or self.facts.tensors[name]
            role = (
                "outside"
                if name in filled
                else "input"
                if name in given
                else ("output" if name in self.outputs else "between")
            )
            buffers.append(Buffer(name, t.dtype, shape(t, {}), role))
        outputs = {t.name: (self.root(t.name), shape(t, {})) for t in self.spec.outputs}
        reached = [self.stage(g) for g in groups]
        pauses = tuple(
            Pause(
                o.name,
                sum(stage < _after(o, self.stages) for stage in reached),
                tuple(outputs[name] for name in o.inputs),
                o.outputs,
            )
            for o in self.outside
        )
        return Network(self.spec.name, tuple(buffers), steps, tuple(outputs.values()), pauses)


def stages(spec: Spec, outside: Sequence[Outside]) -> dict[str, int]:
    """By tensor: the number of consecutive outside calls that it depends on."""
    found = dict.fromkeys((t.name for t in spec.inputs), 0)
    found |= dict.fromkeys((e.target for e in spec.equations), 0)
    before: dict[str, int] = {}
    # A call can read what depends on an earlier call, so this iterates to a fixed point.
    while outside and before != found:
        before = dict(found)
        for e in ordered(spec):
            found[e.target] = max((found[e.target], *(found[s] for s in e.sources())))
        for o in outside:
            found |= dict.fromkeys((name for name in o.outputs if name), _after(o, found))
    return found


def _after(call: Outside, found: Mapping[str, int]) -> int:
    """The stage of the tensors that an outside call fills."""
    return 1 + max((found[name] for name in call.inputs), default=-1)
