"""Evolving the kernels of a module or spec, in the process that asks for it."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from backends.compiled import Kernels
from backends.registry import target as machine_of
from backends.served import Served
from frontends.compiled.module import CompiledModule
from ir.errors import KernelError
from ir.estimate.cost import roofline
from ir.estimate.estimate import estimate
from ir.machine import Machine
from ir.nest.nest import LoopNest
from ir.network import Network
from ir.workload import Workload
from search.cli.arguments import Arguments, arguments
from search.cli.files import keeper, require_engine, write
from search.cli.invocation import Interrupt, current_invocation
from search.cli.models import sources
from search.cli.promote import Destination
from search.cli.results import page
from search.cli.serving import serving
from search.cli.session import Ended, Session, SessionPlan
from search.cli.suite import Problem, kernel_problem
from search.core.workload import WeightedShape
from search.display.display import display
from search.llm.endpoint import endpoint
from search.report.render import render
from search.store.address import word_without_password
from speciate.compiling import by_records
from speciate.here import target_here
from speciate.records import records_folder
from speciate.subject import Named, subject

# The part of the seconds that all kernels share alike; the rest goes by the time that they could save.
EVEN = 0.25


class Evolved(CompiledModule):
    """A compiled module whose kernels were searched for just now."""

    page = ""  # what `report` writes

    def report(self, file: str | Path) -> None:
        """Writes the page that shows the searches: one HTML file that needs no other."""
        write("report", Path(file), self.page.encode())

    def __deepcopy__(self, memo: dict[int, Any]) -> Evolved:
        return _shown(super().__deepcopy__(memo), self.page)

    def __reduce__(self) -> tuple[Any, ...]:
        unpacked, parts = super().__reduce__()
        return _unpacked, (unpacked, parts, self.page)


def _unpacked(unpacked: Any, parts: tuple[Any, ...], shown: str) -> Evolved:
    return _shown(unpacked(*parts), shown)


def _shown(run: CompiledModule, shown: str) -> Evolved:
    call = run.call
    made = Evolved(run.made, run.linked, run.state, run.seed, call.reuse, call.graph, call.source)
    made.__dict__["page"] = shown
    return made


def evolve(
    named: Named,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    target: str | None = None,
    seconds: float | None = None,
    evaluations: int | None = None,
    backend: str | None = None,
    records: str | Path | None = None,
    store: str | None = None,
    workers: int | None = None,
    cluster: str | None = None,
    seed: int = 0,
    quiet: bool = False,
    allow_torch: Sequence[str] = (),
) -> Evolved:
    """Searches for fast kernels of a module's call, and returns the call by the best known ones.

    named, args, kwargs, target, allow_torch: as of `speciate.compile`.  seconds: of search in all;
    each kernel has a share by how far the estimate of its seed schedule is from its roofline, times
    its steps.  evaluations: candidates of each kernel, 32 by default where no seconds are given.  backend: of the target; by default the
    first that can be used here.  records: a folder for the winners; by default the user's, where
    `speciate.compile` finds them.  store: where runs are kept, a file or URL; by default the user's.
    workers: candidates evaluated at a time.  cluster: where they are, as of `evolve --cluster`
    (docs/scale.md); by default on this machine.  seed: of the search.  quiet: shows no progress, which a
    terminal or notebook redraws.

    A search starts from what earlier ones in the store found for the same kernel, so that calling
    it again goes on. Raises KernelError for what cannot be imported, where a kernel has no
    correct candidate, and where a cluster cannot be used.
    """
    found = subject(named, args, kwargs, allow_torch)
    name = target or target_here(args, kwargs, found.state)
    words = {"target": name, "seconds": seconds, "evaluations": evaluations, "store": store}
    words |= {"seed": seed, "workers": workers, "cluster": cluster}
    said = [f"--{option}={value}" for option, value in words.items() if value is not None]
    asked = arguments([*said, "--memory"], name, "")
    served = serving(machine_of(name), (backend,) if backend else ()).served[0]
    kernels = Kernels(served.machine, served.backend)
    network, _ = found.networks(kernels)
    root = Path(records) if records is not None else records_folder()
    session = _searched(asked, _problems(asked, network, kernels, served), root, said, quiet)
    made = by_records(found, name, served.name, root, seed=0, reuse=False, graph=False)
    return _shown(made, _page(session.ended, session.plan.command))


def _problems(
    asked: Arguments, network: Network, kernels: Kernels, served: Served
) -> list[Problem]:
    """A search for each kernel of a network."""
    ours = not asked.targets[0].endswith(".toml")
    fixed = (WeightedShape({}),)
    problems = [
        kernel_problem(asked, Workload(spec, {}, ({},)), [served], ours, None, fixed)
        for spec in network.kernels()
    ]
    if asked.seconds is None:
        return problems
    nests = {spec.name: kernels.emit(spec)[0] for spec in network.kernels()}
    steps = Counter(step.spec.name for step in network.steps)
    gains = {n: steps[n] * to_gain(nest, served.machine) for n, nest in nests.items()}
    shares = shared(asked.seconds, gains)
    return [
        replace(p, settings=replace(p.settings, seconds=shares[p.settings.kernel]))
        for p in problems
    ]


def _searched(
    asked: Arguments, problems: Sequence[Problem], records: Path, said: Sequence[str], quiet: bool
) -> Session:
    """The searches, whose winners are in a folder of records then."""
    around = current_invocation()
    shown = display(sys.stderr, quiet)
    with ExitStack() as stack:
        on = None
        if asked.cluster is not None:
            require_engine()
            from search.cli.clusters import reached

            on = stack.enter_context(reached(asked.cluster, asked.workers, problems))
        kept = stack.enter_context(closing(keeper(asked, around, shown.say)))
        plan = SessionPlan(
            store=kept,
            workers=asked.workers or around.workers,
            destination=Destination(out=records),
            command=f"speciate.evolve: {' '.join(map(word_without_password, said))}",
            sources=sources((), endpoint(around.variables), shown.say),
            memory=asked.memory,
            cluster=on,
        )
        session = Session(plan, shown, Interrupt())
        session.run(problems)
    _require_found(session)
    return session


def _page(ended: Sequence[Ended], command: str) -> str:
    return render(page(ended, command, datetime.now(UTC))) if ended else ""


def to_gain(nest: LoopNest, machine: Machine) -> float:
    """Microseconds that a kernel's seed schedule takes by the estimate beyond its roofline: what a
    search could save at most in a step."""
    return max(0.0, estimate(nest, machine, {}) - roofline(nest.spec, machine, {}).us)


def shared(seconds: float, gains: Mapping[str, float]) -> dict[str, float]:
    """Seconds by kernel: a part alike for all, the rest by what each could gain in a call; all
    alike where nothing could be gained."""
    whole = sum(gains.values())
    even = EVEN if whole else 1.0
    return {
        name: seconds * (even / len(gains) + (1 - even) * (gain / whole if whole else 0.0))
        for name, gain in gains.items()
    }


def _require_found(session: Session) -> None:
    """KernelError where no candidate of a kernel is correct, KeyboardInterrupt where the user ended
    the search. A kernel for which there was no time to try one keeps its seed schedule."""
    if session.interrupt.came:
        raise KeyboardInterrupt
    for fault in session.faults.values():
        raise fault
    for ended in session.ended:
        if ended.outcome.fault is not None:
            raise ended.outcome.fault
        if ended.outcome.best is None and ended.outcome.evaluations:
            raise KernelError(
                f"no candidate of `{ended.problem.title}` is correct",
                hint=f"the run is stored: --show={ended.outcome.run}",
            )
