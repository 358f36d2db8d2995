"""Models kernels that others measured on a target, and compares with their published times.

benchmarks/published_figures/TARGET.toml has the published figures with their sources. Each kernel
is built with the schedule that the backend's time model prefers. Nothing runs here.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from backends.backend import BackendError, ModelsTime
from backends.registry import backend, served_by, target
from benchmarks.results import save
from ir.autoschedule.autoschedule import autoschedule
from ir.errors import KernelError
from ir.estimate.cost import roofline
from ir.lower.lower import lower
from ir.nest.nest import LoopNest
from ir.parse.parse import parse_workload
from ir.spec import Spec

HERE = Path(__file__).parent
FIGURES = HERE / "published_figures"
# For these figures only, and for those that are raced too.
SPECS = (FIGURES / "specs", HERE / "specs")
Row = dict[str, Any]


def figures(name: str) -> list[Row]:
    """Returns the published figures of a target. Raises KernelError if there are none."""
    file = FIGURES / f"{name}.toml"
    if not file.is_file():
        known = ", ".join(sorted(p.stem for p in FIGURES.glob("*.toml")))
        raise KernelError(f"nothing published is kept for `{name}`", allowed=known)
    return tomllib.loads(file.read_text(encoding="utf-8"))["figure"]


def spec_text(name: str) -> str:
    """Returns the text of a figure's spec."""
    file = next(f for folder in SPECS if (f := folder / f"{name}.kir").is_file())
    return file.read_text(encoding="utf-8")


def row(given: Mapping[str, Any], name: str, languages: Sequence[str]) -> Row:
    """Returns a figure with the modelled time of each language, or the reason if there is none."""
    text = spec_text(given["spec"])
    spec, sizes = parse_workload(text, given["spec"]).spec, given["sizes"]
    bound = roofline(spec, target(name), sizes)
    published = given.get("us") or bound.flops / given["tflops"] * 1e-6
    found: Row = {**given, "published_us": round(published, 2), "flops": bound.flops}
    for language in languages:
        try:
            us, schedule = modelled(spec, sizes, name, language)
        except BackendError as error:
            found[language] = {"failure": str(error)}
            continue
        off = round(us / published - 1, 4)
        found[language] = {"us": round(us, 2), "error": off, "schedule": schedule}
    return found


def modelled(spec: Spec, sizes: Mapping[str, int], name: str, language: str) -> tuple[float, str]:
    """Returns the modelled time of a kernel with the schedule that its backend's model prefers, and
    that schedule."""
    serving = backend(language)
    machine = served_by(target(name), serving)
    if not isinstance(serving, ModelsTime):
        raise KernelError(f"backend `{language}` models no times")

    def guessed(nest: LoopNest) -> float:
        return serving.model(nest, machine, sizes, {}).us

    nest = lower(spec, autoschedule(spec, machine, sizes, (), guessed), machine, sizes)
    with tempfile.TemporaryDirectory() as folder:
        made = serving.build(serving.emit(nest, machine), nest, machine, Path(folder))
    timing = serving.time(made, nest, machine, sizes, {})
    if timing.kind != "modelled":
        raise KernelError(f"`{language}` measures here: this command is for where the chip is not")
    return timing.us, str(nest.schedule)


def summary(rows: Sequence[Row], languages: Sequence[str]) -> Row:
    """Returns for each language the geometric mean of published over modelled time."""
    return {
        name: geometric_mean([r["published_us"] / r[name]["us"] for r in rows if "us" in r[name]])
        for name in languages
        if any("us" in r[name] for r in rows)
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Builds, and writes the file."""
    made = argparse.ArgumentParser(prog="benchmarks.published", description=__doc__)
    made.add_argument("--target", required=True, help="a target that others measured")
    made.add_argument("--out", required=True, type=Path, help="the result file")
    given = made.parse_args(arguments)
    machine = target(given.target)
    rows = []
    for figure in figures(given.target):
        rows.append(row(figure, given.target, machine.backends))
        print(json.dumps(rows[-1]), flush=True)
    command = f"python3 -m benchmarks.published --target={given.target} --out={given.out.name}"
    said = {b: backend(b).available(machine)["toolchain"] for b in machine.backends}
    save(
        given.out,
        {
            "command": command,
            "date": date.today().isoformat(),
            "machine": machine.title,
            "toolchains": said,
            "published": list(machine.backends),
            "summary": summary(rows, machine.backends),
            "rows": rows,
        },
    )
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KernelError as error:
        print(f"benchmarks.published: {error}", file=sys.stderr)
        sys.exit(2)
