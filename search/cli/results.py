"""The results of a session: the table or the JSON object, the files, and the commands that
continue."""

from __future__ import annotations

import json
import platform
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from typing import TYPE_CHECKING, Any

from ir.errors import KernelError
from search.cli.arguments import Arguments
from search.cli.files import write
from search.cli.invocation import Invocation
from search.cli.modules import MODEL_NEW, Total, constants_of, kernel_text, repeats, total
from search.cli.promote import dispatch_texts, winner_nest, winner_source
from search.cli.session import Ended, Session
from search.cli.suite import Problem, Suite
from search.cli.tables import filled, summary_text
from search.cli.task_check import Results, task_results, task_text
from search.cli.traces import trace
from search.core.outcome import Outcome
from search.report.collect import result
from search.report.page import Page, RunReport, Text

if TYPE_CHECKING:  # only for jobs
    from search.cli.job import JobInStore
    from search.cli.network import FoundCall


def conclude(
    asked: Arguments,
    around: Invocation,
    session: Session,
    suite: Suite,
    job: Mapping[str, Any] | None = None,
) -> bool:
    """Prints the results on stdout, and writes the files that the user wants.

    Returns False if the winners of a task are wrong. job: the state of the searches' job.
    """
    lines = [ended.line for ended in session.ended]
    outcomes = [ended.outcome for ended in session.ended]
    left = suite.module.left if suite.module is not None else ()
    found_calls = _found_calls(suite, session)
    totals = [_total(suite, found_calls, name, outcomes, left) for name in suite.networks]
    results = _results(session, suite, totals)
    if asked.json:
        found: dict[str, Any] = {"runs": [ended.table() for ended in session.ended]}
        if suite.module is not None:
            rows = [{**each.table(), **_said(suite, results, each.target)} for each in totals]
            found["problem"] = {"name": suite.module.spec.name, "targets": rows}
        if job is not None:
            found["job"] = job
        print(json.dumps(found))
    elif lines:
        print(summary_text(lines, around.width), end="")
        if job is not None:
            print(_job_text(job, around), end="")
        for each in totals:
            print(filled(each.text(), around.width), end="")
            if each.target in results and suite.module is not None:
                print(_task_text(suite, each.target, results[each.target]))
    elif job is not None:
        print(_job_text(job, around), end="")
    sys.stdout.flush()
    if asked.model_new is not None:
        call = found_calls[totals[0].target]
        _model_new(asked.model_new, around, session, suite, totals[0], call)
    if asked.report is not None and session.ended:
        _report(asked.report, around, session)
    for line in _unwritten(asked, session):
        print(line, file=sys.stderr)
    if asked.trace is not None and session.ended and session.ended[-1].outcome.best is not None:
        from search.cli.results import timeline

        ended = session.ended[-1]
        data = timeline(ended.problem, ended.outcome)
        write("--trace", around.path(asked.trace), data)
        best = ended.outcome.evaluation
        kind = f", {best.time_kind}," if best else ""
        print(f"evolve: the timeline{kind} is in {asked.trace}", file=sys.stderr)
    return not any(fault for found in results.values() for _, fault in found)


def _found_calls(suite: Suite, session: Session) -> dict[str, FoundCall]:
    """The results of the searches for each call of a problem, by target; empty for a task. Writes
    their records to the destination of winners."""
    module = suite.module
    if module is None or module.sized:
        return {}
    from search.cli.network import found_call, program_record
    from search.record.program import network_digest, write_program

    found, say = {}, session.display.say
    for target, call in suite.calls.items():
        found[target] = one = found_call(call.plan, session.ended, say)
        folder = session.plan.destination.out
        if folder is None or not one.kernels or session.interrupt.came:
            continue
        digest = network_digest(
            module.spec, module.aliases, module.fixed, [each.name for each in module.outside]
        )
        given = [t for t in module.spec.inputs if t.name not in module.fixed]
        command = session.plan.command
        record = program_record(one, module.spec.name, digest, given, command)
        say(f"  the program is recorded in {write_program(folder, record)}")
    return found


def _total(
    suite: Suite,
    found: Mapping[str, FoundCall],
    target: str,
    outcomes: Sequence[Outcome],
    left: Sequence[str],
) -> Total:
    call = found.get(target)
    if call is None:
        return total(target, suite.networks[target], outcomes, left)
    seeds = call.plan.times if call.plan.measured else {}
    return total(target, call.way.call, outcomes, left, seeds, call.before, call.after)


def _job_text(job: Mapping[str, Any], around: Invocation) -> str:
    from search.cli.job_stored import job_words

    return job_words(job, around.width)


def _unwritten(asked: Arguments, session: Session) -> Iterator[str]:
    """In a checkout: how to get the source of a user's kernel, which is not written by default."""
    wanted = session.plan.destination
    nowhere = [
        e.problem
        for e in session.ended
        if e.outcome.best is not None
        and not e.interrupted
        and not e.problem.for_tests
        and not (wanted.promotes(e.problem) or wanted.writes(e.problem))
    ]
    if nowhere and asked.promote is None and not asked.json and asked.model_new is None:
        names = ", ".join(problem.title for problem in nowhere)
        # Records are tested only for the project's targets, so others are refused there.
        promoted = ", --promote to kernels_generated/" if all(p.ours for p in nowhere) else ""
        stored = "" if asked.no_store else ", --show=RUN prints one that is stored"
        yield (
            f"evolve: {names}: written nowhere; --out=DIR writes winners to a folder"
            f"{promoted}{stored}"
        )


def how_to_go_on(
    asked: Arguments, around: Invocation, session: Session, job: JobInStore | None = None
) -> Iterator[str]:
    """After an interrupt: the commands that continue. job: of the searches."""
    if not session.interrupt.came:
        return
    if asked.no_store:
        yield "evolve: interrupted; nothing was kept (--no-store)"
        return
    same = []
    if asked.store is not None:
        same.append(f"--store={asked.store}")
    if asked.cluster is not None:
        same.append(f"--cluster={asked.cluster}")
    if job is not None:
        words = [f"--resume={job.name}", *same, *_of_module(asked)]
        words += [f"--target={name}" for name in job.target_files if name not in asked.targets]
        yield f"evolve: interrupted; everything is stored. To go on:\n  {around.command(words)}"
        return
    started = session.unfinished
    if started is not None:
        words = [f"--resume={started.outcome.run}", *same]
        if not started.problem.ours:
            words.append(f"--target={asked.targets[0]}")
        yield f"evolve: interrupted; everything is stored. To go on:\n  {around.command(words)}"
    else:
        yield "evolve: interrupted before a search had begun"
    if session.left and started is not None:
        names = ", ".join(dict.fromkeys(p.title for p in session.left))
        yield f"evolve: not begun: {names}"


def _of_module(asked: Arguments) -> list[str]:
    """The words that name a module and its outputs, for a continued job."""
    if asked.problem is None and asked.task is None:
        return []
    options = {"problem": asked.problem, "task": asked.task, "model-new": asked.model_new}
    options |= {"out": asked.out, "allow-torch": ",".join(asked.allow_torch) or None}
    words = [f"--target={name}" for name in asked.targets]
    words += [f"--backend={name}" for name in asked.backends]
    words += [f"--{name}={value}" for name, value in options.items() if value is not None]
    return words + ["--reduced"] * asked.reduced + ["--overwrite"] * asked.overwrite


def _results(session: Session, suite: Suite, totals: Sequence[Total]) -> dict[str, Results]:
    """The results of a task's winners by target; empty if a kernel is missing."""
    module, found = suite.module, {}
    if module is None or module.shape is None:
        return {}
    for each in totals:
        ended = [e for e in session.ended if e.problem.settings.target == each.target]
        if not each.lacking:
            found[each.target] = task_results(module, suite.shaped[each.target], ended)
    return found


def _said(suite: Suite, results: Mapping[str, Results], target: str) -> dict[str, Any]:
    """The further entries of a task's table; no `results` if its winners were not run."""
    if suite.module is None or suite.module.shape is None:
        return {}
    rows = [{"name": n, "fault": fault or None} for n, fault in results.get(target, ())]
    shapes = [dict(one.shape) for one in suite.shaped[target]]
    return {"shape": shapes[0], "shapes": shapes, "results": rows if target in results else None}


def _task_text(suite: Suite, target: str, results: Results) -> str:
    assert suite.module is not None, "a task has a module"
    return task_text(suite.module, suite.shaped[target], target, results)


def _model_new(
    given: str,
    around: Invocation,
    session: Session,
    suite: Suite,
    found: Total,
    call: FoundCall,
) -> None:
    """Writes the solution file, unless a kernel has no correct candidate, which also sets the exit
    code."""
    if found.lacking:
        lacking = ", ".join(found.lacking)
        print(
            f"evolve: {MODEL_NEW}: no correct candidate of {lacking}; no file is written",
            file=sys.stderr,
        )
        return
    assert suite.module is not None and suite.module.solution is not None, "it was asked for"
    kernels = call.plan.kernels
    best = {spec.name: kernel_text(*kernels.emit(spec)) for spec in call.way.call.kernels()}
    passed_over = {kernel.name for kernel in call.kernels if kernel.passed_over}
    for e in session.ended:
        if e.outcome.best is not None and e.outcome.settings.kernel not in passed_over:
            best[e.outcome.settings.kernel] = kernel_text(
                winner_nest(e.problem, e.outcome), winner_source(e.problem, e.outcome)
            )
    again = repeats(served.backend for served in call.plan.served)
    constants = constants_of(call.way, kernels)
    text = suite.module.solution.text(call.way.call, best, constants, again)
    write(MODEL_NEW, around.path(given), text.encode())
    print(f"evolve: ModelNew is in {shlex.quote(given)}", file=sys.stderr)


def _report(given: str, around: Invocation, session: Session) -> None:
    from search.cli.results import page
    from search.report.render import render

    made = page(session.ended, session.plan.command, datetime.now(UTC))
    write("--report", around.path(given), render(made).encode())
    print(f"evolve: the report is in {shlex.quote(given)}", file=sys.stderr)


PACKAGES = ("numpy", "sqlalchemy", "jinja2")


def page(ended: Sequence[Ended], command: str, now: datetime) -> Page:
    """The page about these searches. The last one may have been interrupted."""
    targets = ", ".join(dict.fromkeys(e.problem.settings.target for e in ended))
    title = ended[0].problem.title if len(ended) == 1 else f"{len(ended)} kernels on {targets}"
    return Page(
        title=title,
        command=command,
        date=f"{now.day} {now:%B %Y, %H:%M} UTC",
        results=tuple(_page_result(e) for e in ended),
        facts=_versions(),
    )


def _page_result(ended: Ended) -> RunReport:
    problem, outcome, said = ended.problem, ended.outcome, ended.here
    manifest = problem.served[outcome.backend].backend.manifest
    source = None
    if outcome.best is not None:
        source = Text(f"Source, kernel.{manifest.extension}", winner_source(problem, outcome))
    facts = {
        "toolchain": said.get("toolchain") or manifest.toolchain,
        **{name: said[name] for name in ("device", "clocks") if name in said},
        "evaluation": f"{ended.environment.get('workers')} at a time",
        **_sandbox(ended.environment.get("sandbox")),
        "written to": ended.record or ended.out or "nowhere",
    }
    if sums := problem.settings.rounded:
        facts["rounded to tf32"] = f"operands of {', '.join(sums)}, as the user allows it"
    if left := problem.settings.left_to_torch:
        facts["left to PyTorch"] = f"{', '.join(left)}, in the module that the kernel is of"
    return result(outcome, problem.machine, source, facts, _others(ended), ended.held_out)


def _others(ended: Ended) -> tuple[Text, ...]:
    """The texts of the kernels that share the winner's shapes."""
    if ended.outcome.dispatch is None:
        return ()
    manifest = ended.problem.served[ended.outcome.backend].backend.manifest
    extension, found = manifest.extension, []
    kernels = dispatch_texts(ended.problem, ended.outcome.dispatch)
    for number, kernel in list(enumerate(kernels))[1:]:
        found.append(Text(f"Kernel {number}: schedule", kernel.schedule))
        found.append(Text(f"Kernel {number}: source, kernel_{number}.{extension}", kernel.source))
    return tuple(found)


def _sandbox(layers: object) -> dict[str, str]:
    """The layers of the sandbox, and those that this machine lacks."""
    if not isinstance(layers, Mapping):
        return {}
    held = [name for name, said in layers.items() if str(said).startswith("yes")]
    lacking = [name for name in layers if name not in held]
    words = ", ".join(held) or "none"
    return {"sandbox": words + (f"; not here: {', '.join(lacking)}" if lacking else "")}


def _versions() -> dict[str, str]:
    found = {"machine": f"{platform.system()} {platform.machine()}"}
    found["python"] = platform.python_version()
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def timeline(problem: Problem, outcome: Outcome) -> bytes:
    """The trace of the best candidate. Raises KernelError if it cannot be made."""
    assert outcome.best is not None, "a run without a correct candidate has no timeline"
    try:
        return trace(problem, outcome.best)
    except KernelError as error:
        raise KernelError(
            error.what,
            where="--trace",
            hint="a backend may not be able to; leave --trace out",
        ) from None
