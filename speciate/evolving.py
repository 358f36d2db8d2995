"""Evolving the kernels of a module or spec, in the process that asks for it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from backends.registry import target as machine_of
from backends.served import Served
from backends.shares import others
from frontends.compiled.module import CompiledModule
from ir.spec import Spec
from search.cli.arguments import arguments
from search.cli.files import write
from search.cli.network import FoundCall, program_record
from search.cli.results import page
from search.cli.searched import call_of, searched, words_of
from search.cli.serving import serving
from search.cli.session import Ended, Session
from search.core.phases import phase, recorded
from search.display.display import display
from search.evaluator.nursery import Nursery
from search.record.program import write_program
from search.report.render import render
from search.whole.plan import CallPlan, Say, begin
from search.whole.timed import kept
from speciate.compiling import by_records
from speciate.here import target_here
from speciate.records import records_folder
from speciate.subject import Named, Subject, subject


class Evolved(CompiledModule):
    """A compiled module whose kernels were searched for just now."""

    page = ""  # what `report` writes
    phases: Mapping[str, float] = {}  # seconds that the search took, by what they were for
    faults: Mapping[str, str] = {}  # what went wrong with kernels that keep their seed schedules

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

    named, args, kwargs, target, allow_torch: as of `speciate.compile`.  seconds: of search in all.
    evaluations: candidates of each kernel, all of them shared; 32 by default where no seconds are given.
    They go to the kernels that are expected to save most of a call (`search/loop/rounds.py`).  backend:
    of the target; by default the first that can be used here.  records: a folder for the winners; by default the user's, where
    `speciate.compile` finds them.  store: where runs are kept, a file or URL; by default the user's.
    workers: candidates evaluated at a time.  cluster: where they are, as of `evolve --cluster`
    (docs/scale.md); by default on this machine.  seed: of the search.  quiet: shows no progress, which a
    terminal or notebook redraws.

    A search starts from what earlier ones in the store found for the same kernel, so that calling
    it again goes on. A kernel whose search fails, or whose record cannot be used, has its seed schedule (`faults`).
    Raises KernelError for what cannot be imported, where nothing is found for any kernel or one that the call
    needs has no correct candidate, and where a cluster cannot be used.
    """
    with recorded() as phases, phase("other"), kept(), Nursery() as nursery:
        begun = partial(_begun, backend=backend, nursery=nursery if cluster is None else None)
        early = begun(target) if target is not None else None  # else tensors say which it is
        with phase("import"):
            found = subject(named, args, kwargs, allow_torch)
        name = target or target_here(args, kwargs, found.state)
        served = early or begun(name)
        words = {"target": name, "seconds": seconds, "evaluations": evaluations, "store": store}
        words |= {"seed": seed, "workers": workers, "cluster": cluster}
        said = [f"--{option}={value}" for option, value in words.items() if value is not None]
        asked = arguments([*said, "--memory"], name, "")
        more = others(served.machine, backend)
        shown = display(sys.stderr, quiet)
        root = Path(records) if records is not None else records_folder()
        command = words_of(said, "speciate.evolve")
        plan = CallPlan.of(found.networks, [served], others=more).timed(found.networks, shown.say)
        session = searched(asked, found.made.spec.name, plan, root, command, shown, nursery)
        with phase("choose"):
            call = call_of(plan, session, shown.say)
        if call.kernels:
            _write(root, call, found, command)
        with phase("build"):
            run, faults = _built(found, name, backend, root, session, shown.say)
        with phase("report"):
            made = _shown(run, _page(session.ended, command))
    made.__dict__["phases"], made.__dict__["faults"] = phases.rounded(), faults
    return made


def _built(
    found: Subject, target: str, backend: str | None, root: Path, session: Session, say: Say
) -> tuple[CompiledModule, dict[str, str]]:
    """The call by its records, and what went wrong with kernels that have their seed schedules."""
    faults = {what: str(error) for what, error in session.faults.items()}

    def told(spec: Spec, error: Exception) -> None:
        faults[spec.name] = str(error)
        say(f"`{spec.name}` has its seed schedule, as its record cannot be used: {error}")

    options: dict[str, Any] = {"seed": 0, "reuse": False, "graph": False}
    return by_records(found, target, backend, root, told=told, **options), faults


def _write(root: Path, call: FoundCall, found: Subject, command: str) -> None:
    """The record of a program."""
    spec, fixed = found.made.spec, found.made.fixed
    inputs = [t for t in spec.inputs if t.name not in fixed]
    write_program(root, program_record(call, spec.name, found.digest, inputs, command))


def _begun(target: str, backend: str | None, nursery: Nursery | None) -> Served:
    """What serves a target. Processes that take seconds to begin do so. nursery: of workers on this machine;
    None: there are none."""
    with phase("start"):
        served = serving(machine_of(target), (backend,) if backend else ()).served[0]
        if nursery is not None:
            nursery.warm([served])
        begin(served)
    return served


def _page(ended: Sequence[Ended], command: str) -> str:
    return render(page(ended, command, datetime.now(UTC))) if ended else ""
