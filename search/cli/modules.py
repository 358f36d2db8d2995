"""Modules: a PyTorch file as kernels at all its shapes, with its total and its `ModelNew`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from backends.backend import Backend, Repeats
from backends.compiled import Kernels, constant_inputs, networks
from backends.manifest import Manifest
from backends.parameters import parameters
from backends.served import Served
from frontends.kernelbench.apart import apart
from frontends.kernelbench.parts import Constants, KernelText
from frontends.kernelbench.solution import Solution
from ir.errors import KernelError
from ir.nest.nest import LoopNest
from ir.network import Network, Outside
from ir.partition.choices import Choices
from ir.partition.unify import unified
from ir.spec import Spec
from ir.workload import Sizes
from search.cli.files import require, require_writable
from search.core import quantity
from search.core.outcome import Outcome
from search.core.workload import WeightedShape
from search.whole.times import MEASURED, WholeTimes
from search.whole.ways import Way

SECONDS = 300.0  # seconds that reading a file may take


@dataclass(frozen=True, slots=True)
class Sized:
    """A task at one of its shapes."""

    shape: Mapping[str, int]
    weight: float
    # `spec` and `aliases`: its equations, at literal sizes
    spec: Spec
    aliases: Mapping[str, str]
    outside: tuple[Outside, ...] = ()  # calls that are left to PyTorch


@dataclass(frozen=True, slots=True)
class Module:
    """A parsed problem file or task."""

    file: Path
    # `spec` and `aliases`: its equations, at literal sizes
    spec: Spec
    aliases: Mapping[str, str]
    solution: Solution | None = None  # parts of its `ModelNew`; None without --model-new
    # A task at each of its shapes, the heaviest first; empty for a problem
    sized: tuple[Sized, ...] = ()
    outside: tuple[Outside, ...] = ()  # calls that are left to PyTorch
    left: tuple[str, ...] = ()  # names of their operators
    # inputs of a problem that are constant between calls: parameters
    fixed: frozenset[str] = frozenset()

    @property
    def shape(self) -> Mapping[str, int] | None:
        """The heaviest shape of a task; None for a problem."""
        return self.sized[0].shape if self.sized else None

    def networks(self, kernels: Kernels, choices: Choices) -> tuple[Network, Network | None]:
        """A problem's steps as in `speciate.compile`, and the network before calls. Raises
        KernelError if kernels do not lower."""
        with self._named():
            return networks(self.spec, {}, self.aliases, kernels, self.outside, self.fixed, choices)

    def shaped(self, served: Served, others: Sequence[Served] = ()) -> tuple[Network, ...]:
        """A task's steps at each of its shapes. Raises KernelError if kernels do not lower. others:
        see `Kernels`."""
        kernels = Kernels(served.machine, served.backend, guessed=True, others=others)
        with self._named():
            return tuple(
                networks(one.spec, {}, one.aliases, kernels, one.outside)[0] for one in self.sized
            )

    @contextmanager
    def _named(self) -> Iterator[None]:
        """A context whose errors name the file."""
        try:
            yield
        except KernelError as error:
            raise _within(self.file, error) from None


def constants_of(one: Way, kernels: Kernels) -> Constants | None:
    """What `ModelNew` computes before calls, with seed schedules; None if there is nothing."""
    if one.before is None:
        return None
    texts = {k.name: kernel_text(*kernels.emit(k)) for k in one.before.kernels()}
    return Constants(one.before, tuple(constant_inputs(one.call, one.before)), texts)


def kernel_text(nest: LoopNest, source: str) -> KernelText:
    """A kernel of `ModelNew`. nest: the nest of its source."""
    return KernelText(source, tuple(p for p in parameters(nest) if p.role == "workspace"))


def repeats(backends: Iterable[Backend]) -> str:
    """The text that repeats launches in `ModelNew`, of the first backend with one; empty if there
    is none."""
    return next((b.repeats() for b in backends if isinstance(b, Repeats)), "")


def read(file: Path, reduced: bool, solution: bool, allow_torch: tuple[str, ...] = ()) -> Module:
    """A problem file, read once in a separate process because it is untrusted code.

    reduced: at sizes that can be simulated. solution: whether `ModelNew` will be written.
    allow_torch: operators that are left to PyTorch. Raises KernelError if the file cannot be read
    or exported, if it has no `ModelNew`, or if it does not call such an operator.
    """
    require("torch", "it reads modules", "install it", "--problem")
    try:
        spec, aliases, said, calls, fixed = apart(
            _problem, str(file), reduced, solution, allow_torch, seconds=SECONDS, devices=False
        )
        return Module(file, spec, aliases, said, outside=calls, left=allow_torch, fixed=fixed)
    except KernelError as error:
        raise _within(file, error) from None


def read_task(file: Path, allow_torch: tuple[str, ...] = ()) -> Module:
    """A task's file, also read in a separate process. Raises KernelError as `read` does."""
    require("torch", "it reads modules", "install it", "--task")
    try:
        sized = apart(_task, str(file), allow_torch, seconds=SECONDS, devices=False)
    except KernelError as error:
        raise _within(file, error) from None
    first = sized[0]
    return Module(file, first.spec, first.aliases, None, sized, first.outside, allow_torch)


def _task(file: str, allow_torch: tuple[str, ...]) -> tuple[Sized, ...]:
    """A task's reference as equations, at each shape. Runs in a separate process."""
    from frontends.kernelbench.task import Task
    from frontends.pytorch.external import outside, require_called

    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        task = Task.read(file, allow_torch)
        opened = task.opened()
        found, imports = [], []
        for shape, weight in opened.shapes:
            made = opened.at(shape).imported(task.name)
            imports.append(made)
            found.append(Sized(dict(shape), weight, made.spec, dict(made.aliases), outside(made)))
        require_called(imports, allow_torch)
    return tuple(found)


def _within(file: Path, error: KernelError) -> KernelError:
    inside = error.where and error.where != str(file)
    return error.within(f"{file}: {error.where}" if inside else str(file))


def _problem(
    file: str, reduced: bool, wanted: bool, allow_torch: tuple[str, ...]
) -> tuple[Spec, dict[str, str], Solution | None, tuple[Outside, ...], frozenset[str]]:
    """A file's model as equations, with the parts of a solution, the calls that are left to
    PyTorch, and the constant inputs. Runs in a separate process."""
    from frontends.kernelbench.model_new import solution
    from frontends.kernelbench.problem import Problem
    from frontends.kernelbench.scaled import scaled
    from frontends.pytorch.external import outside, require_called
    from frontends.pytorch.module import imported

    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        problem = Problem.read(file)
        problem = scaled(problem) if reduced else problem
        made = problem.made(fake=not reduced)
        found = imported(made.model, made.inputs, name=problem.name, allow_torch=allow_torch)
        require_called([found], allow_torch)
        said = solution(problem, found) if wanted else None
    return found.spec, dict(found.aliases), said, outside(found), found.fixed


@dataclass(frozen=True, slots=True)
class ShapedNetwork:
    """A module's network at one shape."""

    shape: Mapping[str, int]
    spec: Spec
    network: Network
    # By kernel name in the first network: the sizes at which that kernel equals this network's
    sizes: Mapping[str, Sizes]


@dataclass(frozen=True, slots=True)
class ShapedKernel:
    """A kernel to evolve, with its tuned shapes."""

    spec: Spec
    shapes: tuple[WeightedShape, ...]


@dataclass(frozen=True, slots=True)
class ModuleKernels:
    """The kernels of a module on a target."""

    kernels: tuple[ShapedKernel, ...]
    # The networks with these kernels: at all shapes, or only at the heaviest if the others differ
    # in more than sizes
    shaped: tuple[ShapedNetwork, ...]


def module_kernels(module: Module, networks: Sequence[Network]) -> ModuleKernels:
    """The kernels of a module. networks: at each of its shapes, the heaviest first."""
    first = networks[0]
    groups = list(zip(*(network.kernels() for network in networks)))
    same = all(len(network.kernels()) == len(first.kernels()) for network in networks)
    found = [unified(group) for group in groups] if same else [None]
    if len(networks) == 1 or None in found:
        alone: dict[str, Sizes] = {spec.name: {} for spec in first.kernels()}
        shape = module.shape or {}
        return ModuleKernels(
            tuple(ShapedKernel(spec, (WeightedShape({}),)) for spec in first.kernels()),
            (ShapedNetwork(shape, module.spec, first, alone),),
        )
    kernels = [each for each in found if each is not None]
    shaped = (
        ShapedNetwork(one.shape, one.spec, network, {k.spec.name: k.sizes[n] for k in kernels})
        for n, (one, network) in enumerate(zip(module.sized, networks, strict=True))
    )
    weights = [one.weight for one in module.sized]
    return ModuleKernels(
        tuple(ShapedKernel(k.spec, _shapes(k.sizes, weights)) for k in kernels), tuple(shaped)
    )


def _shapes(sizes: Sequence[Sizes], weights: Sequence[float]) -> tuple[WeightedShape, ...]:
    """The shapes; equal ones are merged and their weights added."""
    found: dict[tuple[tuple[str, int], ...], WeightedShape] = {}
    for each, weight in zip(sizes, weights, strict=True):
        key = tuple(each.items())
        before = found[key].weight if key in found else 0.0
        found[key] = WeightedShape(each, before + weight)
    return tuple(found.values())


MODEL_NEW = "--model-new"
IMPORTED = "py"  # extension of sources that Python imports


def require_new(file: Path, overwrite: bool) -> None:
    """Raises KernelError if the file cannot be written, or exists and must not be replaced."""
    require_writable(MODEL_NEW, file)
    if file.exists() and not overwrite:
        raise KernelError(
            f"`{file}` already exists",
            where=MODEL_NEW,
            hint="name another file, or give --overwrite to replace it",
        )


def require_own(left: Sequence[str]) -> None:
    """Raises KernelError if operators are left to PyTorch."""
    if left:
        raise KernelError(
            f"a `ModelNew` calls kernels alone, and `{left[0]}` is left to PyTorch",
            where=MODEL_NEW,
            hint="leave it out, or --allow-torch",
        )


def not_imported(manifest: Manifest) -> str:
    """Why Python cannot import sources of a backend; empty if it can."""
    if manifest.extension == IMPORTED and manifest.imported:
        return ""
    return f"its sources are {manifest.language}, which a module of Python cannot call"


def require_imported(served: Mapping[str, Sequence[Served]]) -> None:
    """Raises KernelError unless there is one target, with sources that Python imports.

    served: by target, the backends in its race.
    """
    if len(served) != 1:
        raise KernelError(
            f"a `ModelNew` runs on one target, not on {len(served)}",
            where=MODEL_NEW,
            hint="name one with --target",
        )
    for target, each in served.items():
        for manifest in (one.backend.manifest for one in each):
            if not_imported(manifest):
                raise KernelError(
                    f"kernels for `{target}` are {manifest.language}, which a file of Python "
                    "cannot hold",
                    where=MODEL_NEW,
                    allowed=f"a target whose sources are .{IMPORTED} files",
                    hint="leave it out, or name another target",
                )


@dataclass(frozen=True, slots=True)
class Total:
    """The total of a network on a target."""

    name: str  # name of the module
    target: str
    steps: int  # its calls of kernels
    kernels: int
    lacking: tuple[str, ...]  # kernels without a correct candidate
    # `first_us` and `best_us`: sums over the steps; None if a kernel has no time
    first_us: float | None
    best_us: float | None
    time_kind: str  # kind of the best times; several are joined by "and"
    # Operators that PyTorch computes between kernels; the sums do not include their time
    left: tuple[str, ...] = ()
    # Measured calls before and after the search; None if nothing is measured
    before: WholeTimes | None = None
    after: WholeTimes | None = None

    def table(self) -> dict[str, Any]:
        """The total as plain data."""
        return {
            "target": self.target,
            "steps": self.steps,
            "kernels": self.kernels,
            "lacking": list(self.lacking),
            "left_to_torch": list(self.left),
            "first_us": self.first_us,
            "best_us": self.best_us,
            "time_kind": self.time_kind or None,
            "whole": {
                "first_us": self.before.us if self.before else None,
                "first_graph_us": self.before.graph_us if self.before else None,
                "us": self.after.us if self.after else None,
                "graph_us": self.after.graph_us if self.after else None,
            },
        }

    def text(self) -> str:
        """A line for a person."""
        steps = f"{self.steps} step{'s' * (self.steps != 1)}"
        kernels = f"{self.kernels} kernel{'s' * (self.kernels != 1)}"
        head = f"{self.name} on {self.target}: {steps} by {kernels}"
        if self.left:
            head += f", and {', '.join(self.left)} by PyTorch, in no sum"
        if self.best_us is None:
            return f"{head}; no sum of times, without a correct {', '.join(self.lacking)}"
        first = f" (first: {quantity.time(self.first_us)})" if self.first_us is not None else ""
        text = f"{head}; sum of best times {quantity.time(self.best_us)}, {self.time_kind}{first}"
        return text + self._whole_text()

    def _whole_text(self) -> str:
        if self.after is None:
            return ""
        before = f" (before: {quantity.time(self.before.us)})" if self.before else ""
        text = f"; a call takes {quantity.time(self.after.us)}{before}"
        if self.after.graph_us is None:
            return text
        first = self.before.graph_us if self.before else None
        before = f" (before: {quantity.time(first)})" if first is not None else ""
        return f"{text}, as a graph {quantity.time(self.after.graph_us)}{before}"


def total(
    target: str,
    network: Network,
    outcomes: Sequence[Outcome],
    left: Sequence[str] = (),
    seeds: Mapping[str, float] = MappingProxyType({}),
    before: WholeTimes | None = None,
    after: WholeTimes | None = None,
) -> Total:
    """The total of a network.

    outcomes: of searches, including those for other targets. left: operators that are left to
    PyTorch. seeds: measured times of kernels without a search.
    """
    best, kinds = dict(seeds), set()
    first: dict[str, float | None] = dict(seeds)
    if any(step.spec.name in seeds for step in network.steps):
        kinds.add(MEASURED)
    for outcome in outcomes:
        name = outcome.settings.kernel
        if outcome.settings.target != target:
            continue
        best.pop(name, None)
        if outcome.evaluation is None:
            continue
        best[name] = outcome.evaluation.us
        first[name] = outcome.first_us
        kinds.add(outcome.evaluation.time_kind)
    names = [step.spec.name for step in network.steps]
    return Total(
        name=network.name,
        target=target,
        steps=len(names),
        kernels=len(set(names)),
        lacking=tuple(name for name in dict.fromkeys(names) if name not in best),
        first_us=_sum(first.get(name) for name in names),
        best_us=_sum(best.get(name) for name in names),
        time_kind=" and ".join(sorted(kinds)),
        left=tuple(left),
        before=before,
        after=after,
    )


def _sum(times: Iterable[float | None]) -> float | None:
    total: float = 0
    for time in times:
        if time is None:
            return None
        total += time
    return total
