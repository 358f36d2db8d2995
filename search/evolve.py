"""The command `evolve`: evolves kernels for targets, shows the progress, and stores the results."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from backends.registry import target_names
from ir.errors import KernelError
from search.cli.arguments import LOCAL, Arguments, arguments, example
from search.cli.files import artefacts, require, require_engine, require_writable, url
from search.cli.invocation import Invocation, current_invocation
from search.cli.listings import (
    collected,
    jobs,
    jobs_text,
    kernels,
    kernels_text,
    runs,
    runs_text,
    salvaged,
    shown,
    targets,
    targets_text,
    versions,
    versions_text,
)
from search.cli.memory_limit import require_memory
from search.cli.modules import require_new
from search.cli.promote import destination
from search.cli.suite import Suite, library, suite
from search.store.address import without_password
from search.whole.timed import kept

DONE, WRONG_USE = 0, 2


def main(words: Sequence[str]) -> int:
    """Runs the command and returns its exit code."""
    try:
        asked = arguments(words, example(target_names()), example(library()))
        around = current_invocation()
        if said := _said(asked, around):
            table, text = said
            print(json.dumps(table) if asked.json else text.rstrip())
            return DONE
        with kept():
            return _evolve(asked, around)
    except KernelError as error:
        print(f"evolve: {error}", file=sys.stderr)
        return WRONG_USE


def _said(asked: Arguments, around: Invocation) -> tuple[dict[str, Any], str] | None:
    """The result of an option that needs no search, as plain data and as text; None if there is
    none."""
    if asked.version:
        found = versions()
        return found, versions_text(found)
    if asked.list_targets:
        rows = targets()
        return {"targets": rows}, targets_text(rows, around.width)
    if asked.list_kernels:
        rows = kernels()
        return {"kernels": rows}, kernels_text(rows)
    of_store = {
        "--list-runs": asked.list_runs,
        "--show": asked.show is not None,
        "--salvage": asked.salvage is not None,
        "--copy-store": asked.copy_store is not None,
        "--collect-artefacts": asked.collect_artefacts,
    }
    for option in (option for option, given in of_store.items() if given and asked.no_store):
        raise KernelError("nothing is stored", where=option, hint="leave --no-store out")
    if not any(of_store.values()):
        return None
    if asked.salvage is not None:
        return salvaged(asked, around, asked.salvage)
    if asked.copy_store is not None:
        from search.cli.copying import copied

        return copied(asked, around, asked.copy_store)
    if asked.collect_artefacts:
        return collected(asked, around)
    if asked.show is not None:
        table, text = shown(asked, around, asked.show)
        return {"job" if "job" in table else "run": table}, text
    rows, of_jobs = runs(asked, around), jobs(asked, around)
    listed = runs_text(rows, without_password(url(asked, around)), around.width)
    more = {"jobs": of_jobs} if of_jobs else {}
    return {"runs": rows, **more}, listed + jobs_text(of_jobs)


def _evolve(asked: Arguments, around: Invocation) -> int:
    """Checks all options before anything is written, then searches."""
    _require_outputs(asked, around)
    if asked.job is not None:
        return _job(asked, around)
    stored = asked.resume or asked.replay
    # a resumed task, whose kernels are stored
    goes_on = asked.resume is not None and (asked.problem or asked.task)
    found = suite(asked, around.path) if stored is None or goes_on else Suite()
    destination(asked, around, found.problems)
    if asked.cluster in (None, LOCAL):
        require_memory(found.problems, asked.workers or around.workers, asked.trace is not None)
    # Imported late: a database and a sandbox take long to import, and most mistakes are found
    # earlier.
    from search.cli.execute import execute

    return execute(asked, around, found)


def _job(asked: Arguments, around: Invocation) -> int:
    from search.cli.job_file import read_job, require_unsaid

    require_unsaid(asked)
    job = read_job(asked, around.path)
    destination(asked, around, job.problems)
    if asked.cluster in (None, LOCAL):
        require_memory(job.problems, asked.workers or around.workers, False)
    from search.cli.execute import execute

    return execute(asked, around, Suite(job.problems, notes=job.notes), job)


def _require_outputs(asked: Arguments, around: Invocation) -> None:
    for option, given in (
        ("--store", asked.store),
        ("--resume", asked.resume),
        ("--replay", asked.replay),
    ):
        if asked.no_store and given is not None:
            raise KernelError("nothing is stored", where=option, hint="leave --no-store out")
    artefacts(asked, around)
    if asked.report is not None:
        require("jinja2", "it writes the page", "install it, or leave --report out", "--report")
    if asked.cluster is not None:
        require_engine()
    for option, given in (("--report", asked.report), ("--trace", asked.trace)):
        if given is not None:
            require_writable(option, around.path(given))
    if asked.model_new is not None:
        require_new(around.path(asked.model_new), asked.overwrite)
    elif asked.overwrite and asked.out is None:
        raise KernelError(
            "it is of --model-new and --out", where="--overwrite", hint="leave it out"
        )
    kernels = 1 if asked.resume or asked.replay else len(asked.kernels)
    if asked.trace is not None and (kernels != 1 or len(asked.targets) > 1):
        raise KernelError(
            "a timeline shows one kernel on one target",
            where="--trace",
            hint="name one with --kernel",
        )


def command() -> int:
    """The entry point `speciate` of an installed copy."""
    return main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
