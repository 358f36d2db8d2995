"""Renews the records of kernels_generated/: emits, builds, checks and times each again.

Run it after a change of a template, a backend or a simulator. It renews sources, digests and
figures; it keeps lineage and schedule. It does not change the record of a kernel that is no longer
correct.

With `--digests` it keeps the figures too. This is for a change of wording only: the program must be
the same except for the names of variables.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from backends.backend import BackendError
from backends.emit import template_digest
from ir.autoschedule.autoschedule import autoschedule, plain
from ir.digest import spec_digest, text_digest
from ir.errors import KernelError
from ir.schedule import Schedule
from ir.source import near
from kernels_generated.reproduction import Reproduction, reproduction
from search.core.evaluation import Evaluation, Failure
from search.core.workload import bound_us
from search.record.record import MEASURED, Record, read_record, record_folders, write_record
from search.record.specialization import digest_of
from tools.same_program import same_program

FOLDER = "kernels_generated"
EXAMPLES = """
examples:
  renew_records
      renews every record
  renew_records softmax/{target} --json
      renews one and prints the result on stdout as JSON
"""


@dataclass(frozen=True, slots=True)
class Renewal:
    """The result of renewing one record."""

    record: str
    before_us: float
    us: float  # Times before and now, in microseconds.
    source_changed: bool
    fault: str = ""  # Why the record was not renewed. Empty if it was.

    def line(self) -> str:
        """Returns a line for people."""
        if self.fault:
            return f"{self.record}: left as it is: {self.fault}"
        source = "source changed" if self.source_changed else "same source"
        return f"{self.record}: {source}, {self.before_us:.4g} -> {self.us:.4g} us"


def renew(root: Path, folder: Path, digests_only: bool = False) -> Renewal:
    """Renews one record under a root.

    digests_only: runs nothing and keeps the figures. A source that differs in more than the digests
    that it quotes and the names of variables is a fault.
    """
    stored = read_record(folder)
    name, before = f"{folder.parent.name}/{folder.name}", stored.record.us

    def left(why: str) -> Renewal:
        return Renewal(name, before, before, False, why)

    try:
        made = reproduction(stored)
        sources = made.emit_all()
        if digests_only:
            if not _same_programs(made, sources):
                return left("its program changed; renew it whole")
            record = _with_digests(made, sources)
        else:
            found = made.evaluate_all(sources)
            if isinstance(found, Failure):
                return left(f"{found.stage}: {found.reason}")
            if stored.record.time_kind == MEASURED != found.time_kind:
                return left(f"its time was {MEASURED}, and here it could only be {found.time_kind}")
            record = _record(made, sources, found)
        fresh = replace(
            stored,
            source=sources[0],
            record=record,
            specializations=tuple(
                replace(texts, source=source)
                for texts, source in zip(stored.specializations, sources[1:], strict=True)
            ),
        )
        write_record(root, fresh, replace=True)
    except KernelError as error:
        return left(str(error))
    except BackendError as error:
        return left(f"{error.stage}: {error.reason}")
    changed = list(sources) != [kernel.source for kernel in stored.kernels]
    return Renewal(name, before, record.us, changed)


def _same_programs(made: Reproduction, sources: Sequence[str]) -> bool:
    """Whether the sources differ from the stored ones only in the digests that they quote and in
    the names of variables."""
    old, spec = made.stored.record, spec_digest(made.workload.spec)
    quoted = (old.digests.schedule, *(s.schedule_digest for s in old.specializations))
    return all(
        same_program(
            kernel.source.replace(old.digests.spec, spec).replace(
                was, text_digest(kernel.schedule)
            ),
            source,
        )
        for kernel, was, source in zip(made.stored.kernels, quoted, sources, strict=True)
    )


def _with_digests(made: Reproduction, sources: Sequence[str]) -> Record:
    """Returns the record with all digests renewed."""
    stored, old = made.stored, made.stored.record
    return replace(
        old,
        digests=replace(
            old.digests,
            spec=spec_digest(made.workload.spec),
            schedule=text_digest(stored.schedule),
            source=text_digest(sources[0]),
            templates=template_digest(old.backend),
            variant=digest_of(stored.variant),
        ),
        specializations=tuple(
            replace(
                one,
                source_digest=text_digest(source),
                schedule_digest=text_digest(texts.schedule),
                variant_digest=digest_of(texts.variant),
            )
            for one, source, texts in zip(
                old.specializations, sources[1:], stored.specializations, strict=True
            )
        ),
    )


def _record(made: Reproduction, sources: Sequence[str], found: Evaluation) -> Record:
    """Returns the record with all figures and digests renewed."""
    old, spec = _with_digests(made, sources), made.workload.spec
    machine, shape = made.machine, old.shape
    toolchain = _said(made, "toolchain") or made.backend.manifest.toolchain
    measured = found.time_kind == MEASURED
    return replace(
        old,
        digests=replace(old.digests, toolchain=toolchain, code=found.code_sha256 or None),
        device=_said(made, "device") if measured else None,
        clocks=_said(made, "clocks") if measured else None,
        correct_by=found.correct_by,
        time_kind=found.time_kind,
        us=found.us,
        checked=_each_once(dict(e.sizes) for e in found.errors if dict(e.sizes) in _own(made)),
        reduced=(),  # `checked` contains no reduced sizes.
        first_us=_us(made, autoschedule(spec, machine, shape)),
        plain_us=_us(made, plain(spec, machine, shape)),
        roofline_us=bound_us(spec, machine, made.shapes),
        single_us=_single_us(made, sources[0]) if old.specializations else None,
        workload=tuple(
            replace(tuned, us=time.us)
            for tuned, time in zip(old.workload, found.times, strict=True)
        ),
    )


def _said(made: Reproduction, name: str) -> str | None:
    """Returns a property that the backend reports for this machine. None if it reports none."""
    return str(made.can[name]) if made.can.get(name) else None


def _us(made: Reproduction, schedule: Schedule) -> float | None:
    """Returns the time of another schedule of the spec. None if it does not work."""
    found = made.evaluate(None, str(schedule))
    return found.us if isinstance(found, Evaluation) else None


def _own(made: Reproduction) -> list[dict[str, int]]:
    """Returns the shapes of the workload and of the record. The shapes that a secret draws differ
    each time."""
    shapes = (*made.workload.checks, *(s.sizes for s in made.shapes))
    return [dict(sizes) for sizes in shapes]


def _each_once(shapes: Iterable[dict[str, int]]) -> tuple[dict[str, int], ...]:
    """Returns the shapes without duplicates. Several kernels may be checked at one shape."""
    return tuple({tuple(shape.items()): shape for shape in shapes}.values())


def _single_us(made: Reproduction, source: str) -> float | None:
    """Returns the time of the first of several kernels alone, over all shapes."""
    found = made.evaluate(source)
    return found.us if isinstance(found, Evaluation) else None


def main(words: Sequence[str], checkout: Path) -> int:
    """Runs the command. Returns 0 if every record was renewed, 1 if one was not, 2 for wrong
    usage."""
    parser = argparse.ArgumentParser(
        prog="renew_records",
        description="Renews the records of kernels_generated/.",
        epilog=EXAMPLES.format(target="<target>"),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("records", nargs="*", metavar="KERNEL/TARGET", help="default: all")
    parser.add_argument("--json", action="store_true", help="print one JSON object on stdout")
    parser.add_argument(
        "--digests",
        action="store_true",
        help="renew digests only, and keep figures: the program must be the same",
    )
    asked = parser.parse_args(words)
    root = checkout / FOLDER
    try:
        folders = _chosen(root, asked.records)
    except KernelError as error:
        print(f"renew_records: {error}", file=sys.stderr)
        return 2
    done = []
    for number, folder in enumerate(folders, 1):
        print(f"{number}/{len(folders)} {folder.relative_to(root)}", file=sys.stderr)
        done.append(renew(root, folder, asked.digests))
        if not asked.json:
            print(done[-1].line(), flush=True)
    if asked.json:
        print(json.dumps({"records": [_table(r) for r in done]}))
    return 1 if any(r.fault for r in done) else 0


def _chosen(root: Path, names: Sequence[str]) -> list[Path]:
    found = {f.relative_to(root).as_posix(): f for f in record_folders(root)}
    for name in names:
        if name not in found:
            raise KernelError(
                f"there is no record `{name}` under {root}",
                allowed=", ".join(found) or "none: there are no records yet",
                hint=near(name, found, "name it as KERNEL/TARGET"),
            )
    return [found[name] for name in names or found]


def _table(renewal: Renewal) -> dict:
    return {
        "record": renewal.record,
        "before_us": renewal.before_us,
        "us": renewal.us,
        "source_changed": renewal.source_changed,
        "fault": renewal.fault or None,
    }


if __name__ == "__main__":
    tree = os.environ.get("BUILD_WORKSPACE_DIRECTORY")
    sys.exit(main(sys.argv[1:], Path(tree) if tree else Path(__file__).parent.parent))
