"""The best known kernels: records that searches wrote, found again by the equations of a kernel.

`speciate.evolve` writes to a folder of the user (`records_folder`). The project's own records
(`kernels_generated/`) come after it, and hold kernels of the library alone.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

import kernels_generated
from backends.backend import Backend
from backends.compiled import Known
from backends.served import Served
from ir.digest import spec_digest
from ir.errors import KernelError
from ir.literal import literal
from ir.lower.lower import lower
from ir.machine import Machine
from ir.parse.parse import parse_schedule, parse_spec
from ir.partition.choices import Choices
from ir.spec import Spec
from search.cli.invocation import current_invocation
from search.record.program import ProgramRecord, program_file, read_program
from search.record.record import RECORD, SCHEDULE, VARIANT, Stored, read_record
from speciate.subject import OpenSpec

LIBRARY = Path(kernels_generated.__file__).parent


def records_folder() -> Path:
    """The user's folder, beside the store of runs ($XDG_DATA_HOME/speciate/records)."""
    return Path(current_invocation().store).with_name("records")


def known_program(
    folders: Sequence[Path], network: str, target: str, backend: str
) -> ProgramRecord | None:
    """What is known of a network (`network_digest`) in some folders, the first before the others; None
    where there is nothing. A KernelError for what cannot be read, or was edited by hand."""
    found = (read_program(program_file(root, network, target, backend)) for root in folders)
    return next((each for each in found if each is not None), None)


def known_network(
    folders: Sequence[Path],
    network: str,
    machine: Machine,
    backend: Backend,
    given: OpenSpec | None = None,
    others: Sequence[Served] = (),
) -> tuple[Records, Choices]:
    """The records of kernels that a network is made by, without those that its program passes over, and the
    choices of its partition. network: see `known_program`; the others as of `Records`."""
    program = known_program(folders, network, machine.name, backend.manifest.name)
    passed_over = program.passed_over if program else ()
    choices = Choices(program.choices if program else {}, asked=False)
    return Records(folders, machine, backend, given, others, passed_over), choices


class Records:
    """What is known for backends of a target, in some folders, the first before the others.

    given: the spec that the user gave, whose records may be for open sizes.  others: the backends beside the
    first one that make kernels of a network (`backends/shares.py`).  passed_over: digests of sources that are
    not used (`ProgramRecord.passed_over`).
    """

    def __init__(
        self,
        folders: Sequence[Path],
        machine: Machine,
        backend: Backend,
        given: OpenSpec | None = None,
        others: Sequence[Served] = (),
        passed_over: Collection[str] = (),
    ):
        self.folders, self.given, self.passed_over = folders, given, passed_over
        first = Served(backend, machine)
        self.machines = {one.name: one.machine for one in (first, *others)}
        self.used: dict[str, Path] = {}  # the records of kernels that were asked for, by name

    def __call__(self, spec: Spec) -> Known | None:
        """How a kernel was made before; None where there is no record. A KernelError where there is
        one that cannot be read, or was edited by hand."""
        for root in self.folders:
            if (found := self._stored(root, spec)) is not None:
                self.used[spec.name], stored = found
                own = stored.record.freely_edited
                return Known(
                    parse_schedule(stored.schedule, SCHEDULE),
                    None if stored.variant is None else parse_spec(stored.variant, VARIANT),
                    stored.source if own else None,
                    stored.record.backend,
                    stored.record.rounded,
                )
        return self._open(spec)

    def _stored(self, root: Path, spec: Spec) -> tuple[Path, Stored] | None:
        """The fastest of the records of a spec below a root: that of a race, and those of each backend."""
        found = []
        for folder in self._places(root / spec.name):
            stored = read_record(folder)
            if stored.record.backend not in self.machines:
                continue
            if stored.record.digests.spec != spec_digest(spec):
                continue  # another kernel of this name
            if stored.record.digests.source in self.passed_over:
                continue
            if edited := stored.edited_by_hand():
                raise KernelError(
                    f"`{edited[0]}` of a record was edited by hand",
                    where=str(folder),
                    hint="evolve the kernel again, or remove the folder",
                )
            found.append((folder, stored))
        return min(found, key=lambda one: one[1].record.us, default=None)

    def _places(self, root: Path) -> list[Path]:
        """The folders of records below that of a kernel."""
        target = next(iter(self.machines.values())).name
        names = (target, *(f"{target}.{name}" for name in self.machines))
        return [root / name for name in names if (root / name / RECORD).is_file()]

    def _open(self, spec: Spec) -> Known | None:
        """What is known of the user's spec with its sizes open; None where it does not fit these."""
        if self.given is None:
            return None
        for root in self.folders:
            found = self._stored(root, self.given.spec)
            if found is None or found[1].record.freely_edited:
                continue  # an edited source is for open sizes, and cannot be emitted for these
            folder, stored = found
            schedule = replace(parse_schedule(stored.schedule, SCHEDULE), kernel=spec.name)
            variant = None
            if stored.variant is not None:
                variant = literal(parse_spec(stored.variant, VARIANT), self.given.sizes)
                variant = replace(variant, name=spec.name)
            by = stored.record.backend
            try:
                lower(variant or spec, schedule, self.machines[by], {})
            except KernelError:
                continue  # it is tuned for other sizes, and does not fit
            self.used[spec.name] = folder
            return Known(schedule, variant, backend=by, rounded=stored.record.rounded)
        return None
