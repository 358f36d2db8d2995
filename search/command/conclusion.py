"""The conclusion of a session: the table or the JSON object, the files asked for, how to go on."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from search.command.arguments import Arguments
from search.command.model_new import OPTION
from search.command.output import write
from search.command.promotion import winner_source
from search.command.session import Session
from search.command.suite import Suite
from search.command.summary import summary_text
from search.command.surroundings import Surroundings
from search.command.table import filled
from search.command.task import Results, text, tried
from search.command.total import Total, total


def conclude(asked: Arguments, around: Surroundings, session: Session, suite: Suite) -> bool:
    """Says on stdout what was found, and writes the files asked for.

    False where the winners of a task are wrong.
    """
    lines = [ended.line for ended in session.ended]
    outcomes = [ended.outcome for ended in session.ended]
    left = suite.module.left if suite.module is not None else ()
    totals = [total(name, network, outcomes, left) for name, network in suite.networks.items()]
    results = _results(session, suite, totals)
    if asked.json:
        found: dict[str, Any] = {"runs": [ended.table() for ended in session.ended]}
        if suite.module is not None:
            rows = [{**each.table(), **_said(suite, results, each.target)} for each in totals]
            found["problem"] = {"name": suite.module.spec.name, "targets": rows}
        print(json.dumps(found))
    elif lines:
        print(summary_text(lines, around.width), end="")
        for each in totals:
            print(filled(each.text(), around.width), end="")
            if each.target in results and suite.module is not None:
                print(_task_text(suite, each.target, results[each.target]))
    sys.stdout.flush()
    if asked.model_new is not None:
        _model_new(asked.model_new, around, session, suite, totals[0])
    if asked.report is not None and session.ended:
        _report(asked.report, around, session)
    for line in _unwritten(asked, session):
        print(line, file=sys.stderr)
    if asked.trace is not None and session.ended and session.ended[-1].outcome.best is not None:
        from search.command.timeline import timeline

        ended = session.ended[-1]
        data = timeline(ended.problem, ended.outcome)
        write("--trace", around.path(asked.trace), data)
        best = ended.outcome.evaluation
        kind = f", {best.time_kind}," if best else ""
        print(f"evolve: the timeline{kind} is in {asked.trace}", file=sys.stderr)
    return not any(fault for found in results.values() for _, fault in found)


def _unwritten(asked: Arguments, session: Session) -> Iterator[str]:
    """In a checkout, how to have the source of a kernel of one's own, as it goes nowhere."""
    wanted = session.plan.destination
    names = [
        e.problem.title
        for e in session.ended
        if e.outcome.best is not None
        and not e.interrupted
        and not e.problem.backend.manifest.for_tests
        and not (wanted.promotes(e.problem) or wanted.writes(e.problem))
    ]
    if names and asked.promote is None and not asked.json and asked.model_new is None:
        yield (
            f"evolve: {', '.join(names)}: written nowhere; --out=DIR writes winners to a folder, "
            "--promote to kernels_generated/, --show=RUN prints one that is stored"
        )


def how_to_go_on(asked: Arguments, around: Surroundings, session: Session) -> Iterator[str]:
    """After an interrupt, the commands that do the rest."""
    if not session.interrupt.came:
        return
    if asked.no_store:
        yield "evolve: interrupted; nothing was kept (--no-store)"
        return
    same = []
    if asked.store is not None:
        same.append(f"--store={asked.store}")
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


def _results(session: Session, suite: Suite, totals: Sequence[Total]) -> dict[str, Results]:
    """What a task's winners come to, by target; nothing where a kernel is lacking."""
    module, found = suite.module, {}
    if module is None or module.shape is None:
        return {}
    for each in totals:
        ended = [e for e in session.ended if e.problem.settings.target == each.target]
        if not each.lacking:
            found[each.target] = tried(module, suite.shaped[each.target], ended)
    return found


def _said(suite: Suite, results: Mapping[str, Results], target: str) -> dict[str, Any]:
    """What a task's table has more; no `results` where its winners were not run."""
    if suite.module is None or suite.module.shape is None:
        return {}
    rows = [{"name": n, "fault": fault or None} for n, fault in results.get(target, ())]
    shapes = [dict(one.shape) for one in suite.shaped[target]]
    return {"shape": shapes[0], "shapes": shapes, "results": rows if target in results else None}


def _task_text(suite: Suite, target: str, results: Results) -> str:
    assert suite.module is not None, "a task has a module"
    return text(suite.module, suite.shaped[target], target, results)


def _model_new(
    given: str, around: Surroundings, session: Session, suite: Suite, found: Total
) -> None:
    """The solution file; not where a kernel has no correct candidate, as the exit code says too."""
    if found.lacking:
        lacking = ", ".join(found.lacking)
        print(
            f"evolve: {OPTION}: no correct candidate of {lacking}; no file is written",
            file=sys.stderr,
        )
        return
    assert suite.module is not None and suite.module.solution is not None, "it was asked for"
    best = {e.outcome.settings.kernel: winner_source(e.problem, e.outcome) for e in session.ended}
    text = suite.module.solution.text(suite.networks[found.target], best)
    write(OPTION, around.path(given), text.encode())
    print(f"evolve: ModelNew is in {shlex.quote(given)}", file=sys.stderr)


def _report(given: str, around: Surroundings, session: Session) -> None:
    from search.command.pages import page
    from search.report.render import render

    made = page(session.ended, session.plan.command, datetime.now(UTC))
    write("--report", around.path(given), render(made).encode())
    print(f"evolve: the report is in {shlex.quote(given)}", file=sys.stderr)
