"""The suite: the kernels to evolve for each target, checked before anything starts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from backends.manifest import Manifest
from backends.served import Served
from backends.shares import others
from ir.errors import KernelError
from ir.machine import Machine
from ir.network import Network
from ir.parse.parse import parse_workload
from ir.print import spec_text
from ir.source import near
from ir.spec import Spec
from ir.workload import LIBRARY, Sizes, Workload
from search.cli.arguments import EVALUATIONS, Arguments
from search.cli.files import given_schedule, text_of
from search.cli.modules import (
    Module,
    ShapedKernel,
    ShapedNetwork,
    module_kernels,
    not_imported,
    read,
    read_task,
    require_imported,
    require_own,
)
from search.cli.serving import Serving, serving, usable
from search.cli.shapes import in_order
from search.cli.shapes import workload as shapes_of
from search.cli.targets import machine, machine_of
from search.core.lowered import spec_of
from search.core.settings import (
    ANSWER_TOKENS,
    POLICY,
    REQUESTS,
    STEPS,
    TRIALS,
    WEIGH,
    WINDOW,
    Settings,
)
from search.core.workload import WeightedShape, heaviest
from search.llm.costs import prices
from search.llm.ensemble import ensemble
from search.llm.ledger import Ledger
from search.loop.weighing import OPTION as WEIGHING
from search.loop.weighing import weighing
from search.operator import MODEL_OPERATORS, local_operators
from search.policy import policy
from search.warm_start.first import require_lowered
from search.whole.plan import CallPlan, networks_of


@dataclass(frozen=True, slots=True)
class Problem:
    """One kernel for one target, with everything that its search needs."""

    settings: Settings
    served: Mapping[str, Served]  # the target by backend, in the order of the settings
    tune: Sizes  # sizes in the kernel's own file
    ours: bool  # whether the target belongs to the project, so that its records are tested later
    library: bool = False  # whether the kernel is the library's
    run: str = ""  # a stored run that continues; empty for a new one
    replays: str = ""  # a stored run whose models' answers are replayed; empty for none

    @property
    def title(self) -> str:
        """The title for a person."""
        return f"{self.settings.kernel} on {self.settings.target}"

    @property
    def machine(self) -> Machine:
        """The target, for everything that does not depend on a backend."""
        return next(iter(self.served.values())).machine

    @property
    def for_tests(self) -> bool:
        """Whether a backend is only for tests."""
        return any(one.backend.manifest.for_tests for one in self.served.values())


ENDING = ".kir"


@dataclass(frozen=True, slots=True)
class Suite:
    """The problems of a command."""

    problems: tuple[Problem, ...] = ()
    # The problem file or task of all kernels; None for kernels of the library
    module: Module | None = None
    networks: Mapping[str, Network] = field(default_factory=dict)  # the module's steps, by target
    # The same at each shape of a task
    shaped: Mapping[str, tuple[ShapedNetwork, ...]] = field(default_factory=dict)
    # The module's call by target, with the kernels of its partitions
    calls: Mapping[str, CallSearch] = field(default_factory=dict)
    notes: tuple[str, ...] = ()  # for a person: the backends that are left out, and why


def suite(asked: Arguments, path: Callable[[str], Path]) -> Suite:
    """Every kernel for every target of the arguments. Raises KernelError for the first fault.

    path: makes a user's path absolute.
    """
    if not asked.targets:
        raise KernelError(
            "no target was named",
            where="--target",
            hint="for what it can be, see --list-targets",
        )
    if asked.problem is not None or asked.task is not None:
        return _module(asked, path)
    for option, value in (
        ("--reduced", asked.reduced),
        ("--model-new", asked.model_new),
        ("--allow-torch", asked.allow_torch),
    ):
        if value:
            by = "--problem" if option != "--allow-torch" else "--problem or a --task"
            raise KernelError(f"{option} is of a {by}", where=option, hint="leave it out")
    kernels = asked.kernels or library()
    if asked.shapes and len(kernels) != 1:
        raise KernelError(
            f"sizes are given for {len(kernels)} kernels",
            where="--shape",
            allowed="one kernel",
            hint="name it with --kernel",
        )
    if asked.schedule is not None and len(kernels) != 1:
        raise KernelError(
            f"a schedule is given for {len(kernels)} kernels",
            where="--schedule",
            allowed="one kernel",
            hint="name it with --kernel",
        )
    machines = [machine(name, path) for name in asked.targets]
    workloads = [(_workload(name, path), not _by_file(name)) for name in kernels]
    _require_distinct("--kernel", [w.spec.name for w, _ in workloads])
    _require_distinct("--target", [m.name for m, _ in machines])
    given = path(asked.schedule) if asked.schedule is not None else None
    problems: list[Problem] = []
    notes: dict[str, None] = {}
    for m, ours in machines:
        every = serving(m, asked.backends)
        for each, in_library in workloads:
            able = every.narrowed(partial(_lacks, each.spec))
            notes |= dict.fromkeys(able.notes)
            problem = kernel_problem(asked, each, able.served, ours, given)
            problems.append(replace(problem, library=in_library))
    return Suite(tuple(problems), notes=tuple(notes))


def _lacks(spec: Spec, manifest: Manifest) -> str:
    """The dtypes of a kernel's tensors that a backend does not support, in words; empty if none."""
    dtypes = dict.fromkeys(t.dtype for t in (*spec.inputs, *spec.outputs))
    lacking = [dtype for dtype in dtypes if dtype not in manifest.dtypes]
    return f"its kernels hold no {', '.join(lacking)}, which `{spec.name}` has" if lacking else ""


def _module(asked: Arguments, path: Callable[[str], Path]) -> Suite:
    """Every kernel of a problem file or of a task, for every target."""
    by = "--problem" if asked.task is None else "--task"
    of_problems = (
        ("--problem", asked.problem),
        ("--reduced", asked.reduced),
        ("--model-new", asked.model_new),
    )
    misplaced = of_problems if asked.task is not None else ()
    for option, value in (
        ("--kernel", asked.kernels),
        ("--shape", asked.shapes),
        ("--schedule", asked.schedule),
        *misplaced,
    ):
        if value:
            raise KernelError(
                f"{option} and {by} do not go together",
                where=option,
                hint="the file says which kernels there are, and their sizes",
            )
    machines = [machine(name, path) for name in asked.targets]
    _require_distinct("--target", [m.name for m, _ in machines])
    every = {m.name: serving(m, asked.backends) for m, _ in machines}
    if asked.model_new is not None:
        every = {name: each.narrowed(not_imported) for name, each in every.items()}
        require_imported({name: each.served for name, each in every.items()})
        require_own(asked.allow_torch)
    if asked.task is None:
        _require_one_kernel(asked)
    if asked.task is not None:
        module = read_task(path(asked.task), asked.allow_torch)
    else:
        module = read(
            path(asked.problem or ""), asked.reduced, asked.model_new is not None, asked.allow_torch
        )
    calls = {m.name: _call(asked, module, every[m.name], ours) for m, ours in machines}
    if not any(each.kernels for each in calls.values()):
        raise KernelError(
            "there is no kernel to evolve: "
            + ("PyTorch computes all of it" if module.left else "nothing is computed"),
            where=str(module.file),
        )
    notes = dict.fromkeys(note for each in calls.values() for note in each.notes)
    return Suite(
        tuple(problem for each in calls.values() for problem in each.problems()),
        module,
        {name: each.shaped[0].network for name, each in calls.items()},
        {name: each.shaped for name, each in calls.items()},
        calls,
        tuple(notes),
    )


@dataclass(frozen=True, slots=True)
class CallSearch:
    """A module's call on a target, with the data for a search of each of its kernels."""

    asked: Arguments
    serving: Serving  # all backends in the race
    ours: bool  # whether the target belongs to the project
    plan: CallPlan
    kernels: Mapping[str, ShapedKernel]  # of the usual partition, by name
    shaped: tuple[ShapedNetwork, ...]  # of the usual partition, at its tuned shapes

    def problem(self, spec: Spec) -> Problem:
        """The problem of a kernel. Raises KernelError if it does not lower."""
        kernel = self.kernels.get(spec.name) or ShapedKernel(spec, (WeightedShape({}),))
        served = self.able(kernel.spec).served
        workload = _workload_of(kernel)
        return kernel_problem(self.asked, workload, served, self.ours, None, kernel.shapes)

    def problems(self) -> list[Problem]:
        """The problems of the kernels of all its partitions."""
        return [self.problem(seed.spec) for seed in self.plan.seeds()]

    def able(self, spec: Spec) -> Serving:
        """The backends that support a kernel's dtypes."""
        return self.serving.narrowed(partial(_lacks, spec))

    @property
    def notes(self) -> tuple[str, ...]:
        """For a person: the backends that are left out, and why."""
        able = (note for k in self.kernels.values() for note in self.able(k.spec).notes)
        return tuple(dict.fromkeys((*self.serving.notes, *able)))


def _call(asked: Arguments, module: Module, serving: Serving, ours: bool) -> CallSearch:
    first, *racing = serving.served
    names = {one.name for one in racing}
    more = [one for one in others(first.machine) if one.name in names]
    if module.sized:
        networks = module.shaped(first, more)
        plan = CallPlan.of(networks_of(networks[0]), serving.served, others=more)
    else:
        plan = CallPlan.of(module.networks, serving.served, others=more)
        networks = (plan.ways[0].call,)
    found = module_kernels(module, networks)
    kernels = {kernel.spec.name: kernel for kernel in found.kernels}
    return CallSearch(asked, serving, ours, plan, kernels, found.shaped)


def _workload_of(kernel: ShapedKernel) -> Workload:
    """A kernel of a module, checked at its smallest shape."""
    least = min((s.sizes for s in kernel.shapes), key=lambda sizes: math.prod(sizes.values()))
    return Workload(kernel.spec, heaviest(kernel.shapes), (least,))


def resumed(
    asked: Arguments,
    run: str,
    stored: Settings,
    path: Callable[[str], Path],
    opened: Callable[[Machine, str], Served] = usable,
) -> Problem:
    """A stored run as a problem, with the user's new limits.

    opened: makes a backend; by default one that works here. Raises KernelError if another target is
    named, or if there is no such backend.
    """
    if len(asked.targets) > 1:
        raise KernelError("a run has one target", where="--target", hint="leave it out")
    found, ours = machine_of(run, stored.target, asked.targets, path)
    if found.name != stored.target:
        raise KernelError(
            f"run `{run}` is for target `{stored.target}`, not `{found.name}`",
            where="--target",
            hint="leave it out, or name the file that the run was made with",
        )
    limits = {
        name: value
        for name in ("evaluations", "seconds", "max_tokens", "max_cost", "window")
        if (value := getattr(asked, name)) is not None
    }
    spec = spec_of(stored.spec)
    sizes = in_order(spec, stored.sizes)  # a store has them in the order of their names
    settings = replace(
        stored,
        sizes=sizes,
        checks=tuple(in_order(spec, check) for check in stored.checks),
        workload=_in_order(spec, stored.workload),
        **limits,
    )
    known = _tune_of(stored)
    tune, library = known or sizes, known is not None
    served = {name: opened(found, name) for name in stored.backends}
    return Problem(settings, served, tune, ours, library, run)


def library() -> tuple[str, ...]:
    """The names of the starter kernels."""
    return tuple(sorted(file.stem for file in LIBRARY.glob("*" + ENDING)))


def _workload(name: str, path: Callable[[str], Path]) -> Workload:
    by_file = _by_file(name)
    file = path(name) if by_file else LIBRARY / (name + ENDING)
    if not by_file and not file.is_file():
        known = library()
        raise KernelError(
            f"the library has no kernel `{name}`",
            where="--kernel",
            allowed=", ".join(known) or "none: the library is empty",
            hint=near(name, known, "a file of your own must end in .kir"),
        )
    return parse_workload(text_of(file, "--kernel", ENDING), str(file))


def _by_file(name: str) -> bool:
    return name.endswith(ENDING) or "/" in name


def kernel_problem(
    asked: Arguments,
    workload: Workload,
    served: Sequence[Served],
    ours: bool,
    given: Path | None,
    known: tuple[WeightedShape, ...] = (),
) -> Problem:
    """The problem of a kernel. known: its shapes, if the user does not choose them."""
    spec = workload.spec
    shapes = _in_order(spec, known) or shapes_of(spec, workload.tune, asked.shapes)
    sizes = heaviest(shapes)
    if len(shapes) == 1 and not known:
        _require_one_kernel(asked)
    if not workload.checks:
        raise KernelError(
            f"kernel `{spec.name}` has no check sizes",
            where="--kernel",
            hint="add lines such as `check(M=7, N=13)` below its `def`",
        )
    found = served[0].machine
    chosen = asked.policy or POLICY
    policy(chosen)
    operators = named_operators(asked.operators, bool(asked.models))
    require_models(asked.models, asked.prices, asked.max_cost, asked.weigh or WEIGH)
    try:
        for shape, one in product(shapes, served):
            require_lowered(spec, one.machine, shape.sizes)
    except KernelError as error:
        where = f"kernel `{spec.name}` on target `{found.name}`"
        raise error.within(f"{where}: {error.where}" if error.where else where) from None
    schedule = given_schedule(given, spec, [s.machine for s in served], sizes) if given else ""
    limit = asked.evaluations
    if limit is None and asked.seconds is None:
        limit = EVALUATIONS
    settings = Settings(
        kernel=spec.name,
        spec=spec_text(spec),
        target=found.name,
        backends=tuple(one.name for one in served),
        sizes=sizes,
        checks=tuple(in_order(spec, check) for check in workload.checks),
        evaluations=limit,
        seconds=asked.seconds,
        policy=chosen,
        seed=asked.seed or 0,
        secret=asked.secret or "",
        schedule=schedule,
        operators=operators,
        target_speedup=asked.target_speedup,
        stagnation=asked.stagnation,
        workload=shapes if len(shapes) > 1 else (),
        dispatch=(asked.dispatch or 1) if len(shapes) > 1 else 1,
        left_to_torch=asked.allow_torch,
        **_of_models(asked),
    )
    return Problem(settings, {one.name: one for one in served}, workload.tune or sizes, ours)


def _of_models(asked: Arguments) -> dict[str, Any]:
    """The settings about models."""
    return dict(
        models=asked.models,
        max_tokens=asked.max_tokens,
        max_cost=asked.max_cost,
        window=asked.window or WINDOW,
        requests=asked.requests or REQUESTS,
        answer_tokens=asked.answer_tokens or ANSWER_TOKENS,
        effort=asked.effort or "",
        weigh=asked.weigh or WEIGH,
        coach=bool(asked.coach),
        steps=STEPS if asked.steps is None else asked.steps,
        trials=asked.trials or TRIALS,
    )


def _in_order(spec: Spec, shapes: Sequence[WeightedShape]) -> tuple[WeightedShape, ...]:
    return tuple(WeightedShape(in_order(spec, shape.sizes), shape.weight) for shape in shapes)


def _require_one_kernel(asked: Arguments) -> None:
    for option, value in (("--dispatch", asked.dispatch), ("--held-out", asked.held_out)):
        if value not in (None, 1 if option == "--dispatch" else None):
            raise KernelError(
                "kernels share several shapes, and there is one",
                where=option,
                hint="give more than one --shape, or leave it out",
            )


def _tune_of(stored: Settings) -> Sizes | None:
    """The tuning sizes of the library's kernel, if a run is for it."""
    if stored.kernel not in library():
        return None
    workload = parse_workload((LIBRARY / (stored.kernel + ENDING)).read_text(encoding="utf-8"))
    return workload.tune if spec_text(workload.spec) == stored.spec else None


def _require_distinct(option: str, names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise KernelError(
                f"`{name}` is named twice, in two ways", where=option, hint="name it once"
            )


OPERATORS = "--operators"
ALL_OPERATORS = "all"


def named_operators(names: Sequence[str], with_models: bool) -> tuple[str, ...]:
    """The operators that a user names; `all` means all; empty: the default ones.

    Raises KernelError for an unknown operator, or for one that asks a model if none is named.
    """
    known = [*local_operators(), *(MODEL_OPERATORS if with_models else ())]
    if list(names) == [ALL_OPERATORS]:
        return tuple(known)
    for name in names:
        if name not in known:
            asks = name in MODEL_OPERATORS
            raise KernelError(
                f"the operator `{name}` needs a model" if asks else f"no operator `{name}`",
                where=OPERATORS,
                allowed=", ".join((*known, ALL_OPERATORS)),
                hint="name one with --model" if asks else "leave it out for the default operators",
            )
    if names and "combine" in names and len(names) == 1:
        raise KernelError(
            "`combine` takes two parents, and another operator must create the second",
            where=OPERATORS,
            hint="also name an operator with one parent",
        )
    return tuple(names)


def require_models(
    names: Sequence[str], paid: Sequence[str], max_cost: float | None, weigh: str
) -> None:
    """Raises KernelError if names or prices are malformed, or if a budget of money needs a price
    that is unknown.

    paid: prices as the user gives them.
    """
    known, by_money = prices(paid), weighing(weigh).by == "money"
    if names:
        models = ensemble(names).models
        Ledger(known, max_cost=max_cost).require_prices(models)
        if by_money:
            Ledger(known, max_cost=0.0).require_prices(models, WEIGHING)
