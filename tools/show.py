"""Prints a kernel at the levels that it is lowered through, from its spec to the source.

Without --schedule, the kernel uses the first schedule of the search.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from backends.backend import Backend, BackendError, ShowsLevels
from backends.registry import backend_for, served_by, target, target_names
from ir.autoschedule.autoschedule import autoschedule
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.machine import Machine
from ir.nest.nest import LoopNest
from ir.nest.text import nest_text
from ir.parse.schedule import parse_schedule
from ir.print import spec_text, workload_text
from ir.source import near
from ir.workload import Workload
from search.cli.files import text_of
from search.cli.shapes import worded, workload
from tools.kernels import ENDING, named

NAME = "show"
EXAMPLES = """
examples:
  show --kernel=rmsnorm_matmul --target={target}
      every level, each below a heading
  show --kernel=softmax --target={target} --shape=M=4096,K=4096 --level=nest
      one level alone
  show --kernel=my_kernel.kir --target=my_chip.toml --schedule=my_kernel.sched --level=source
"""


@dataclass(frozen=True, slots=True)
class Lowered:
    """A kernel lowered for one machine."""

    workload: Workload
    machine: Machine
    backend: Backend
    nest: LoopNest


@dataclass(frozen=True, slots=True)
class Level:
    """A level of lowering."""

    title: str  # The description for a heading.
    text: Callable[[Lowered], str]


LEVELS: Mapping[str, Level] = {
    "spec": Level("the equations, with their sizes", lambda one: workload_text(one.workload)),
    "schedule": Level("the decisions", lambda one: str(one.nest.schedule)),
    "variant": Level(
        "the equations as the decisions leave them", lambda one: spec_text(one.nest.variant)
    ),
    "nest": Level(
        "launches of statements over tiles", lambda one: nest_text(one.nest, one.machine)
    ),
    "source": Level("what is built", lambda one: one.backend.emit(one.nest, one.machine)),
}


def levels(one: Lowered) -> dict[str, Level]:
    """Returns all levels of a kernel in the order of lowering. The backend's own levels precede the
    source."""
    found = dict(LEVELS)
    source = found.pop("source")
    if isinstance(one.backend, ShowsLevels):
        language = one.backend.manifest.language
        for name, text in one.backend.levels(one.nest, one.machine).items():
            found[name] = Level(f"on the way to {language}", lambda _, text=text: text)
    return {**found, "source": source}


def shown(one: Lowered, level: str = "") -> str:
    """Returns the text of one level, or of all with headings. Raises KernelError for an unknown
    level."""
    there = levels(one)
    if level and level not in there:
        raise KernelError(
            f"there is no level `{level}`",
            where="--level",
            allowed=", ".join(there),
            hint=near(level, there, "leave it out to see all of them"),
        )
    if level:
        return there[level].text(one)
    parts = (f"=== {name}: {each.title} ===\n\n{each.text(one)}" for name, each in there.items())
    return "\n".join(parts)


def lowered(
    given: Workload,
    machine: Machine,
    schedule: str = "",
    shape: str = "",
    where: str = "",
    backend: str | None = None,
) -> Lowered:
    """Lowers a kernel for a machine.

    Raises KernelError for wrong input.

    schedule: its text. Empty for the autoschedule.
    shape: sizes that the kernel does not define itself, as `M=2048,K=512`.
    where: the origin of the schedule, for error messages.
    backend: one of the machine's. None for its first.
    """
    serving = backend_for(machine, backend)
    machine = served_by(machine, serving)
    sizes = workload(given.spec, given.tune, (worded(shape),) if shape else ())[0].sizes
    if schedule:
        decided = parse_schedule(schedule, where)
    else:
        decided = autoschedule(given.spec, machine, sizes)
    try:
        nest = lower(given.spec, decided, machine, sizes)
    except KernelError as error:
        raise error.within(error.where or where) from None
    return Lowered(given, machine, serving, nest)


def asked_for(asked: argparse.Namespace, folder: Path) -> Lowered:
    """Lowers the kernel that the arguments of the command name. Their files are below a folder."""
    by_file = asked.target.endswith(".toml") or "/" in asked.target
    try:
        machine = target(str(folder / asked.target) if by_file else asked.target)
    except KernelError as error:
        raise error.within(error.where or "--target") from None
    schedule = asked.schedule and text_of(folder / asked.schedule, "--schedule", ".sched")
    wanted = asked.backend or None
    return lowered(
        named(asked.kernel, folder), machine, schedule, asked.shape, asked.schedule, wanted
    )


def ask_for(parser: argparse.ArgumentParser, shape: str) -> None:
    """Adds the options that `asked_for` reads. shape: the help text of `--shape`."""
    parser.add_argument("--kernel", required=True, help=f"of the library, or a {ENDING} file")
    parser.add_argument("--target", required=True, help="a target, or the file of one")
    parser.add_argument("--schedule", default="", metavar="FILE", help="a .sched file")
    parser.add_argument("--shape", default="", metavar="M=2048,K=512", help=shape)
    parser.add_argument(
        "--backend", default="", help="a backend of the target (default: its first)"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command. Returns exit code 2 for wrong usage or input."""
    parser = argparse.ArgumentParser(
        prog=NAME,
        description=__doc__,
        epilog=EXAMPLES.format(target=target_names()[0]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    ask_for(parser, "the sizes to tune for")
    parser.add_argument("--level", default="", help=f"{', '.join(LEVELS)}, or one of the backend")
    asked = parser.parse_args(arguments)
    folder = Path(os.environ.get("BUILD_WORKING_DIRECTORY", "."))
    try:
        sys.stdout.write(shown(asked_for(asked, folder), asked.level))
    except KernelError as error:
        print(f"{NAME}: {error}", file=sys.stderr)
        return 2
    except BackendError as error:
        print(f"{NAME}: {error.stage}: {error.reason}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
