"""The page for a session: its results with what only the command knows of them."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from datetime import datetime
from importlib import metadata

from search.command.promotion import dispatch_texts, winner_source
from search.command.session import Ended
from search.obtained import here
from search.report.collect import result
from search.report.page import Page, Result, Text

PACKAGES = ("numpy", "sqlalchemy", "jinja2")


def page(ended: Sequence[Ended], command: str, now: datetime) -> Page:
    """The page that shows these searches, the last of which may have been interrupted."""
    targets = ", ".join(dict.fromkeys(e.problem.settings.target for e in ended))
    title = ended[0].problem.title if len(ended) == 1 else f"{len(ended)} kernels on {targets}"
    return Page(
        title=title,
        command=command,
        date=f"{now.day} {now:%B %Y, %H:%M} UTC",
        results=tuple(_result(e) for e in ended),
        facts=_versions(),
    )


def _result(ended: Ended) -> Result:
    problem, outcome, said = ended.problem, ended.outcome, here(ended.environment)
    source = None
    if outcome.best is not None:
        extension = problem.backend.manifest.extension
        source = Text(f"Source, kernel.{extension}", winner_source(problem, outcome))
    facts = {
        "toolchain": said.get("toolchain") or problem.backend.manifest.toolchain,
        **{name: said[name] for name in ("device", "clocks") if name in said},
        "evaluation": f"{ended.environment.get('workers')} at a time",
        **_sandbox(ended.environment.get("sandbox")),
        "written to": ended.record or ended.out or "nowhere",
    }
    if left := problem.settings.left_to_torch:
        facts["left to PyTorch"] = f"{', '.join(left)}, in the module that the kernel is of"
    return result(outcome, problem.machine, source, facts, _others(ended), ended.unseen)


def _others(ended: Ended) -> tuple[Text, ...]:
    """The texts of the kernels that share the winner's shapes."""
    if ended.outcome.dispatch is None:
        return ()
    extension, found = ended.problem.backend.manifest.extension, []
    kernels = dispatch_texts(ended.problem, ended.outcome.dispatch)
    for number, kernel in list(enumerate(kernels))[1:]:
        found.append(Text(f"Kernel {number}: schedule", kernel.schedule))
        found.append(Text(f"Kernel {number}: source, kernel_{number}.{extension}", kernel.source))
    return tuple(found)


def _sandbox(layers: object) -> dict[str, str]:
    """Which layers of the sandbox candidates ran in, and which this machine lacks."""
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
