"""Checks each decision by itself: its verb, its subject, its options.

Lowering checks whether decisions are legal together.
"""

from __future__ import annotations

from collections.abc import Callable

from ir.contraction import contraction
from ir.dtypes import is_float
from ir.errors import KernelError
from ir.lower.available import require_of_class, require_rendered
from ir.lower.verb_table import VERBS
from ir.machine import DIRECT, Machine
from ir.nest.nest import HINTS, WAYS
from ir.nest.steps import promote
from ir.recurrence import recurrences
from ir.schedule import Decision, Schedule
from ir.spec import DTYPES, Facts, Reduce, Spec
from ir.variant.atomic import WIDE, facts_with_places
from ir.variant.derived import TRIPLE
from ir.variant.expansion import reverse_scans
from ir.variant.precision import NARROW, narrowest, require_narrow
from ir.variant.variant import rewritten
from ir.verify import facts as facts_of

# Kinds that are checked when the decisions are carried out.
_CHECKED_BEFORE = ("order", "flattened", "short", "shape")
MOST_UNROLLED = 16  # iterations of a loop at once
MOST_RESIDENT = 16  # persistent thread blocks per processor


def require_legal(spec: Spec, schedule: Schedule, machine: Machine) -> None:
    """Raises KernelError at the first decision that is wrong by itself."""
    if schedule.kernel != spec.name:
        raise KernelError(
            f"the schedule is for `{schedule.kernel}`, the spec is `{spec.name}`",
            hint=f"its first line must be schedule({spec.name})",
        )
    require_narrow(spec, machine)
    facts = _either(facts_of(spec), facts_with_places(rewritten(spec, schedule)))
    checker = _Checker(spec, facts, machine, schedule)
    seen = set()
    for decision in schedule.decisions:
        key = (decision.verb, decision.subject)
        if key in seen:
            raise KernelError(
                f"`{decision.verb}({decision.subject}, ...)` is decided twice",
                place=decision.place,
            )
        seen.add(key)
        checker.check(decision)


def _either(facts: Facts, formed: Facts) -> Facts:
    """The facts of a spec, extended by the tensors and indices that decisions add."""
    if facts is formed:
        return facts
    return Facts(formed.ranges, {**formed.tensors, **facts.tensors}, facts.sizes)


class _Checker:
    """Checks one decision at a time against known names and the machine's limits."""

    def __init__(self, spec: Spec, facts: Facts, machine: Machine, schedule: Schedule):
        self.spec = spec
        self.machine = machine
        made = (*rewritten(spec, schedule).equations, *spec.equations)
        reductions = {e.target: e for e in made if isinstance(e.value, Reduce)}
        tiled = [d.subject for d in schedule.of("tile")]
        self.schedule = schedule
        self.facts = facts
        self.reductions = reductions
        self.known: dict[str, list[str]] = {
            "index": list(facts.ranges),
            "loop": [f"{i}.outer" for i in tiled],
            "tensor": list(facts.tensors),
            "reduction": list(reductions),
            "level": [n for n in ("grid", "loop") if n == "loop" or n in machine.levels],
            "unit": list(machine.units),
            "dtype": [*DTYPES, TRIPLE],
            "engine": list(machine.rendered_engines),
            "hint": list(HINTS),
            "way": list(WAYS),
            "place": ["grid", *(f"{i}.outer" for i in tiled)],
        }

    def check(self, decision: Decision) -> None:
        """Raises KernelError if a decision's verb, subject, options or numbers are wrong."""
        verb = VERBS.get(decision.verb)
        if verb is None:
            raise KernelError(
                f"unknown decision `{decision.verb}`",
                place=decision.place,
                allowed=", ".join(VERBS),
            )
        self._one_of(verb.subject, decision.subject, decision)
        kinds = {**verb.needs, **verb.may}
        for name, value in decision.options:
            if name not in kinds:
                raise KernelError(
                    f"`{verb.name}` has no option `{name}`",
                    place=decision.place,
                    allowed=", ".join(kinds) or "none",
                )
            self._option(kinds[name], name, value, decision)
        for name in verb.needs:
            if decision.option(name) is None:
                raise KernelError(
                    f"`{verb.name}` needs `{name}=`",
                    place=decision.place,
                    hint=f"{verb.name}({decision.subject}, {name}=...)",
                )
        if rule := _RULES.get(verb.name):
            rule(self, decision)
        require_rendered(decision, self.machine)

    def _option(self, kind: str, name: str, value: object, decision: Decision) -> None:
        if kind == "positive":
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise KernelError(
                    f"`{name}={value}` is not a positive integer", place=decision.place
                )
            return
        self._one_of(kind, str(value), decision)

    def _one_of(self, kind: str, word: str, decision: Decision) -> None:
        if kind in _CHECKED_BEFORE:
            return
        if word not in self.known[kind]:
            hint = "tile its index first" if kind in ("loop", "place") else ""
            raise KernelError(
                f"`{word}` is no {kind} here",
                place=decision.place,
                allowed=", ".join(self.known[kind]) or "none",
                hint=hint,
            )

    def _compute(self, decision: Decision) -> None:
        unit = decision.option("unit")
        if unit == "matrix" and contraction(self.reductions[decision.subject]) is None:
            raise KernelError(
                f"`{decision.subject}` is not a sum of products that the matrix unit takes",
                place=decision.place,
                hint=f"compute({decision.subject}, unit=vector)",
            )
        kept = promote((self.facts.tensors[decision.subject].dtype,))
        if decision.option("acc", kept) != kept:
            raise KernelError(
                f"`{decision.subject}` is accumulated in {kept}, not {decision.option('acc')}",
                place=decision.place,
                allowed=kept,
            )

    def _precision(self, decision: Decision) -> None:
        have = {t.dtype for t in self.spec.inputs if is_float(t.dtype)}
        have |= {"f32", *narrowest(self.spec)}
        have |= {NARROW, TRIPLE} if self.machine.has_matrix(NARROW) else set()
        dtype = decision.option("dtype")
        if dtype not in have:
            why = f"the matrix unit of `{self.machine.name}` does not take"
            why = why if dtype in (NARROW, TRIPLE) else "no input has"
            raise KernelError(
                f"operands of `{decision.subject}` may not be rounded to {dtype}, which {why}",
                place=decision.place,
                allowed=", ".join(sorted(have)),
            )
        compute = self.schedule.find("compute", decision.subject)
        if dtype == TRIPLE and (compute is None or compute.option("unit") != "matrix"):
            raise KernelError(
                f"`{decision.subject}` is not done on the matrix unit, so {dtype} does nothing "
                "for it",
                place=decision.place,
                hint=f"compute({decision.subject}, unit=matrix)",
            )

    def _layout(self, decision: Decision) -> None:
        dtype = decision.option("dtype")
        if dtype is not None and (dtype != NARROW or not self.machine.has_matrix(NARROW)):
            takes = f"the matrix unit of `{self.machine.name}` takes none"
            raise KernelError(
                f"a copy of `{decision.subject}` is not rounded to {dtype}",
                place=decision.place,
                allowed=NARROW if self.machine.has_matrix(NARROW) else takes,
                hint=f"drop dtype={dtype}",
            )

    def _atomic(self, decision: Decision) -> None:
        self._of_class(decision)
        tensor = self.facts.tensors.get(decision.subject)
        if tensor is not None and tensor.dtype not in self.machine.atomics:
            raise KernelError(
                f"`{decision.subject}` is {tensor.dtype}, which memory here does not add to",
                place=decision.place,
                allowed=", ".join(self.machine.atomics),
                hint=f"drop {decision}, or scatter into an f32 tensor and cast it afterwards",
            )
        if tensor is not None and tensor.dtype not in WIDE:
            raise KernelError(
                f"`{decision.subject}` is {tensor.dtype}, and sums of some of its updates, which "
                f"memory would hold, may be beyond the largest {tensor.dtype} where that of all is "
                "not",
                place=decision.place,
                allowed=", ".join(d for d in self.machine.atomics if d in WIDE),
                hint=f"drop {decision}, or scatter into an f32 tensor and cast it afterwards",
            )

    def _cut(self, decision: Decision) -> None:
        self._of_class(decision)
        index, at = decision.subject, str(decision.option("at"))
        reduced = any(index in e.reduced for e in self.reductions.values())
        for name in (index, at):
            if self.schedule.find("tile", name) is None or not reduced or index == at:
                raise KernelError(
                    f"no reduce over `{index}` runs in a loop, for a tile of `{at}` each",
                    place=decision.place,
                    hint=f"tile({name}, size=32)",
                )

    def _online(self, decision: Decision) -> None:
        if self.reductions[decision.subject].reduce.reduction not in ("max", "min"):
            raise KernelError(
                f"`{decision.subject}` is no maximum or minimum, so it has no running form",
                place=decision.place,
                hint=f"fuse({decision.subject}, into=...)",
            )

    def _of_class(self, decision: Decision) -> None:
        require_of_class(decision, self.machine)

    def _keep(self, decision: Decision) -> None:
        self._of_class(decision)
        pipeline = self.schedule.find("pipeline", decision.subject)
        if pipeline is not None:
            raise KernelError(
                f"`{decision.subject}` is kept, so its buffer has a slot for each tile and no other "
                "number of stages",
                place=pipeline.place or decision.place,
                hint=f"drop {pipeline}, or {decision}",
            )

    def _pipeline(self, decision: Decision) -> None:
        if decision.number("stages") < 2:
            raise KernelError(
                f"`stages={decision.option('stages')}` is no pipeline",
                place=decision.place,
                allowed="2 or more",
                hint=f"drop pipeline({decision.subject}, ...)",
            )

    def _group(self, decision: Decision) -> None:
        self._of_class(decision)
        if decision.number("size") < 2:
            raise KernelError(
                f"`size={decision.option('size')}` groups no tiles",
                place=decision.place,
                allowed="2 or more",
                hint=f"drop rasterize({decision.subject}, ...)",
            )
        if decision.option("over") == decision.subject:
            raise KernelError(
                f"`{decision.subject}` is grouped over itself",
                place=decision.place,
                allowed=", ".join(i for i in self.facts.ranges if i != decision.subject),
            )

    def _unroll_loop(self, decision: Decision) -> None:
        self._of_class(decision)
        if not 2 <= decision.number("factor") <= MOST_UNROLLED:
            raise KernelError(
                f"`factor={decision.option('factor')}` is no number of iterations to do at once",
                place=decision.place,
                allowed=f"2 to {MOST_UNROLLED}",
                hint=f"drop {decision}",
            )

    def _of_matmul(self, decision: Decision) -> None:
        self._of_class(decision)
        compute = self.schedule.find("compute", decision.subject)
        if compute is None or compute.option("unit") != "matrix":
            raise KernelError(
                f"`{decision.subject}` is not done on the matrix unit, so `{decision}` would "
                "change nothing",
                place=decision.place,
                hint=f"compute({decision.subject}, unit=matrix)",
            )
        self.machine.model.check_decision(decision, self.machine)

    def _of_machine(self, decision: Decision) -> None:
        self._of_class(decision)
        self.machine.model.check_decision(decision, self.machine)

    def _mirror(self, decision: Decision) -> None:
        self._of_class(decision)
        scans = reverse_scans(self.spec)
        if decision.subject not in scans:
            raise KernelError(
                f"`{decision.subject}` is no reverse scan, so nothing reads it from the end",
                place=decision.place,
                allowed=", ".join(scans) or "none: there is no reverse scan",
                hint=f"drop {decision}",
            )

    def _serpentine(self, decision: Decision) -> None:
        self._of_class(decision)
        index = decision.subject.removesuffix(".outer")
        if any(r.index == index for r in recurrences(self.spec)):
            raise KernelError(
                f"`{index}` counts the steps of a recurrence, which run in order",
                place=decision.place,
                hint=f"drop {decision}",
            )

    def _cache(self, decision: Decision) -> None:
        self._of_class(decision)
        hint, last = decision.option("hint"), decision.option("last")
        if hint is None and last is None:
            raise KernelError(
                f"`cache({decision.subject})` has no hint",
                place=decision.place,
                hint=f"cache({decision.subject}, hint=...)",
            )
        if hint == last:
            raise KernelError(
                f"all loads of `{decision.subject}` have the hint `{hint}`, so `last={last}` would "
                "change nothing",
                place=decision.place,
                hint=f"cache({decision.subject}, hint={hint})",
            )
        self.machine.model.check_decision(decision, self.machine)

    def _epilogue(self, decision: Decision) -> None:
        self._of_machine(decision)
        bulk = self.schedule.find("copy", decision.subject)
        if decision.option("by") == "registers" and (bulk or decision.option("columns")):
            what = (
                "is stored by an engine, which reads" if bulk else "has columns that pass through"
            )
            raise KernelError(
                f"`{decision.subject}` {what} shared memory",
                place=decision.place,
                allowed="by=shared",
                hint=f"epilogue({decision.subject}, by=shared)",
            )

    def _laid(self, decision: Decision) -> None:
        self._of_machine(decision)
        copy = self.schedule.find("copy", decision.subject)
        if copy is not None and copy.option("by") == DIRECT:
            raise KernelError(
                f"`{decision.subject}` is copied past the registers: a warp fills memory without gaps, "
                "in the order of its threads",
                place=decision.place,
                allowed="no `swizzle` and no `pad`",
                hint=f"drop {decision}, or {copy}",
            )
        other = "pad" if decision.verb == "swizzle" else "swizzle"
        if self.schedule.find(other, decision.subject):
            raise KernelError(
                f"the tile of `{decision.subject}` has rows with padding or panels with a swizzle",
                place=decision.place,
                allowed="one of `swizzle` and `pad`",
                hint=f"drop {decision}",
            )

    def _threads(self, decision: Decision) -> None:
        self._of_class(decision)
        allowed = thread_counts(self.machine)
        if decision.option("count") not in allowed:
            raise KernelError(
                f"`count={decision.option('count')}` is no number of threads of a program here",
                place=decision.place,
                allowed=", ".join(map(str, allowed)),
                hint=f"threads({decision.subject}, count={allowed[0]})",
            )

    def _persistent(self, decision: Decision) -> None:
        self._of_class(decision)
        if decision.number("programs") > MOST_RESIDENT:
            raise KernelError(
                f"`programs={decision.option('programs')}` are more than a processor keeps",
                place=decision.place,
                allowed=f"1 to {MOST_RESIDENT}",
            )


def thread_counts(machine: Machine) -> tuple[int, ...]:
    """The legal numbers of threads of a block: powers of two from 32 on, in whole warps
    (`warp`)."""
    counts = (32 << n for n in range(6))
    return tuple(c for c in counts if c % machine.warp == 0 and c <= machine.threads)


_RULES: dict[str, Callable[[_Checker, Decision], None]] = {
    "associate": _Checker._of_class,
    "unroll": _Checker._of_class,
    "split_k": _Checker._of_class,
    "flatten": _Checker._of_class,
    "atomic": _Checker._atomic,
    "mirror": _Checker._mirror,
    "causal_bound": _Checker._cut,
    "compute": _Checker._compute,
    "pack": _Checker._layout,
    "precision": _Checker._precision,
    "online": _Checker._online,
    "keep": _Checker._keep,
    "pipeline": _Checker._pipeline,
    "rasterize": _Checker._group,
    "cluster": _Checker._of_machine,
    "threads": _Checker._threads,
    "persistent": _Checker._persistent,
    "stream_k": _Checker._of_class,
    "cooperative": _Checker._of_class,
    "specialize": _Checker._of_class,
    "registers": _Checker._of_machine,
    "roles": _Checker._of_machine,
    "pingpong": _Checker._of_class,
    "unroll_loop": _Checker._unroll_loop,
    "serpentine": _Checker._serpentine,
    "cache": _Checker._cache,
    "epilogue": _Checker._epilogue,
    "swizzle": _Checker._laid,
    "pad": _Checker._laid,
    "warps": _Checker._of_matmul,
    "instruction": _Checker._of_matmul,
    "overlap": _Checker._of_matmul,
}
