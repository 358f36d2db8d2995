"""A record: a kernel that a search found, as stored in `kernels_generated/`."""

from __future__ import annotations

import re
import tomllib
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from ir.digest import spec_digest, text_digest
from ir.errors import KernelError
from ir.guards import Guard
from ir.parse.parse import parse_workload
from ir.provenance import CORRECT_BY, TIME_KINDS
from ir.source import near
from ir.workload import Sizes
from search.core import quantity
from search.core.evaluation import same_kind
from search.core.toml_text import toml_text
from search.record.placing import place, recover
from search.record.specialization import (
    Specialization,
    Texts,
    Tuned,
    digest_of,
    edited,
    guards,
    numbered,
    require_whole,
    specializations,
    tuned,
)

SPEC = "spec.kir"
BUILD = "BUILD.bazel"
SCHEDULE = "schedule.sched"
VARIANT = "variant.kir"
RECORD = "record.toml"
BUILD_TEXT = 'load("//bazel:kernel.bzl", "kernel_records")\n\nkernel_records()\n'
MEASURED = "measured"
UNSEALED = "none"  # seal of a file without one
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RENEW = "python3 -m tools.renew_records rewrites records that can be read"


@dataclass(frozen=True, slots=True)
class Digests:
    """Digests of everything that the kernel was made from."""

    spec: str
    schedule: str
    source: str
    templates: str  # templates of the backend at that time
    toolchain: str  # the backend's toolchain at that time, a name and a version
    # Of the equations that the schedule is for; None if they are the spec's own.
    variant: str | None = None
    # SHA-256 of the code object that runs at the tuned shape; None if the backend makes none.
    code: str | None = None


@dataclass(frozen=True, slots=True)
class Unfit:
    """A shape at which the kernel must not be used, and the reason."""

    shape: Sizes
    why: str


@dataclass(frozen=True, slots=True)
class Record:
    """Everything about a kernel except its texts."""

    kernel: str
    target: str
    backend: str
    source: str  # file name of the source
    command: str  # the command that made it
    digests: Digests
    # How correctness and times were obtained.
    correct_by: str
    time_kind: str
    # The tuned shape. At that shape `us` is the kernel's time in microseconds, `first_us` the first
    # schedule's, `plain_us` an untiled one's and `roofline_us` the roofline; None if unknown.
    shape: Sizes
    us: float
    checked: tuple[Sizes, ...] = ()  # shapes at which it agrees with the reference
    # Those of `checked` that replace a tuning size that is too expensive to run: the same tiling,
    # with several tiles in every loop and an uneven tail.
    reduced: tuple[Sizes, ...] = ()
    unfit: tuple[Unfit, ...] = ()  # see `Unfit`
    first_us: float | None = None
    plain_us: float | None = None
    roofline_us: float | None = None
    evaluations: int = 0
    seed: int = 0
    secret: str = ""  # seed text for the inputs and shapes of checks; empty: the digests
    lineage: tuple[str, ...] = ()  # differences from the first schedule to this one, a line each
    # Whether the source was edited, so that it cannot be emitted from the schedule.
    freely_edited: bool = False
    # Device and clocks of measured times, as the backend reports them.
    device: str | None = None
    clocks: str | None = None
    single_us: float | None = None  # the mean time without `specializations`
    # The tuned shapes, if there are several. `shape` is then the heaviest, and times are weighted
    # geometric means.
    workload: tuple[Tuned, ...] = ()
    # The choice of a kernel for a shape near a tuned one, `within` a factor of its sizes; else this
    # kernel runs.
    guards: tuple[Guard, ...] = ()
    within: float | None = None
    # Kernels that share the shapes with this one, numbered from 1.
    specializations: tuple[Specialization, ...] = ()
    # Operators of the kernel's module that PyTorch computes.
    left_to_torch: tuple[str, ...] = ()
    # Sums whose operands may be rounded to tf32.
    rounded: tuple[str, ...] = ()
    # Whether the user limited the search to this backend, of several that the target has.
    narrowed: bool = False
    # Digest of all fields above as they were written; empty: the record is not from a file.
    seal: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        for noun, name in (("kernel", self.kernel), ("target", self.target)):
            if not _NAME.fullmatch(name):
                raise KernelError(
                    f"a {noun} named `{name}` cannot name a folder",
                    allowed="letters, digits and _",
                    hint=f"rename the {noun}",
                )
        for name, word, known in (
            ("correct_by", self.correct_by, CORRECT_BY),
            ("time_kind", self.time_kind, TIME_KINDS),
        ):
            if word not in known:
                raise KernelError(f"field `{name}` is {word!r}", allowed=", ".join(known))
        require_whole(self.specializations, self.guards, self.workload, self.shape)

    @property
    def folder(self) -> str:
        """The name of its folder, below its kernel's. A record of a limited search is separate from
        that of the race."""
        return f"{self.target}.{self.backend}" if self.narrowed else self.target

    @property
    def tuned(self) -> list[tuple[dict[str, int], float]]:
        """The tuned shapes with weights."""
        found = [(dict(t.shape), t.weight) for t in self.workload]
        return found or [(dict(self.shape), 1.0)]

    def text(self) -> str:
        """The text of `record.toml`. `parse_record` returns an equal record."""
        return toml_text({"seal": self.sealed(), **self._table()})

    def sealed(self) -> str:
        """The digest of all its fields."""
        return text_digest(toml_text(self._table()))

    def _table(self) -> dict[str, Any]:
        table = asdict(self)
        del table["seal"]
        several = (
            "workload",
            "guards",
            "specializations",
            "left_to_torch",
            "secret",
            "rounded",
            "narrowed",
            "reduced",
        )
        return {k: v for k, v in table.items() if v or k not in several}

    def better_than(self, other: Record) -> bool:
        """Whether this is faster than a record of the same kernel for the same shapes.

        Raises KernelError if the two times are of different kinds.
        """
        same_kind(self.time_kind, other.time_kind)
        return (
            self.tuned == other.tuned
            and self.digests.spec == other.digests.spec
            and self.rounded == other.rounded
            and self.us < other.us
        )


@dataclass(frozen=True, slots=True)
class Stored:
    """A record with its texts."""

    record: Record
    workload: str  # the spec with its shapes
    schedule: str
    source: str
    # The equations that the schedule is for; None if they are the spec's own.
    variant: str | None = None
    specializations: tuple[Texts, ...] = ()  # the texts of the record's specializations

    @property
    def kernels(self) -> tuple[Texts, ...]:
        """The texts of all its kernels, by number."""
        return (Texts(self.schedule, self.source, self.variant), *self.specializations)

    def edited_by_hand(self) -> list[str]:
        """The files whose texts do not match the record's digests."""
        digests = self.record.digests
        spec = parse_workload(self.workload, SPEC).spec
        found = (
            (SPEC, spec_digest(spec), digests.spec),
            (SCHEDULE, text_digest(self.schedule), digests.schedule),
            (self.record.source, text_digest(self.source), digests.source),
            (VARIANT, digest_of(self.variant), digests.variant),
        )
        first = [name for name, now, then in found if now != then]
        first += [RECORD] if self.record.seal not in ("", self.record.sealed()) else []
        return first + edited(self.record.specializations, self.specializations, SCHEDULE, VARIANT)


@dataclass(frozen=True, slots=True)
class Written:
    """The result of `write_record`."""

    folder: Path  # folder of the record
    written: bool
    why: str = ""  # why the existing record was kept, for a person


def parse_record(text: str, where: str = "") -> Record:
    """The record of a `record.toml` text. Raises KernelError with the fault."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as e:
        raise KernelError(f"this is not TOML: {e}", where=where, hint=_RENEW) from None
    known = [f.name for f in fields(Record)]
    for name in table:
        if name not in known:
            raise KernelError(
                f"field `{name}` is not known", where=where, hint=near(name, known, _RENEW)
            )
    try:
        return _record(table)
    except (TypeError, ValueError, KeyError, AttributeError) as e:
        raise KernelError(f"this is no record: {e}", where=where, hint=_RENEW) from None
    except KernelError as e:
        raise e.within(where) from None


def read_record(folder: Path) -> Stored:
    """The record in `<root>/<kernel>/<its folder>/`. Raises KernelError if a file is missing or
    invalid."""
    record = parse_record(_read(folder / RECORD), str(folder / RECORD))
    return Stored(
        record=record,
        workload=_read(folder.parent / SPEC),
        schedule=_read(folder / SCHEDULE),
        source=_read(folder / record.source),
        variant=_variant(folder, 0),
        specializations=tuple(
            Texts(
                schedule=_read(folder / numbered(SCHEDULE, number)),
                source=_read(folder / specialization.source),
                variant=_variant(folder, number),
            )
            for number, specialization in enumerate(record.specializations, 1)
        ),
    )


def _variant(folder: Path, kernel: int) -> str | None:
    file = folder / numbered(VARIANT, kernel)
    return _read(file) if file.exists() else None


def record_folders(root: Path) -> tuple[Path, ...]:
    """The folders of all records under a root, by kernel and target."""
    return tuple(sorted(p.parent for p in root.glob(f"[!.]*/[!.]*/{RECORD}")))


def write_record(root: Path, stored: Stored, replace: bool = False, tested: bool = True) -> Written:
    """Writes a record under a root, atomically.

    An existing record is replaced if the new one is faster at the same shape, if only the new one
    was measured, or with `replace`. tested: whether a build file makes a test of it. Raises
    KernelError if another spec of the same name has records there, or if the root cannot be
    written; then nothing has changed.
    """
    record = stored.record
    folder = root / record.kernel / record.folder
    try:
        recover(folder)
        require_same_spec(folder, stored.workload)
        if (folder / RECORD).exists() and not replace:
            why = _why_kept(record, read_record(folder).record)
            if why:
                return Written(folder, False, why)
        _place(folder, stored, tested)
    except OSError as e:
        raise KernelError(
            f"the record cannot be written: {e.strerror}",
            where=str(folder),
            hint="give a folder that you may write to, or do not promote",
        ) from e
    return Written(folder, True)


def _record(table: dict[str, Any]) -> Record:
    table = {"seal": UNSEALED, **table}
    table["digests"] = Digests(**table["digests"])
    table["unfit"] = tuple(Unfit(dict(u["shape"]), u["why"]) for u in table.get("unfit", ()))
    table["checked"] = tuple(dict(sizes) for sizes in table.get("checked", ()))
    table["reduced"] = tuple(dict(sizes) for sizes in table.get("reduced", ()))
    table["lineage"] = tuple(table.get("lineage", ()))
    for name in ("left_to_torch", "rounded"):
        table[name] = tuple(table.get(name, ()))
    table["us"] = float(table["us"])
    for name, made in (
        ("workload", tuned),
        ("guards", guards),
        ("specializations", specializations),
    ):
        table[name] = made(table.get(name, []))
    return Record(**table)


def _why_kept(new: Record, old: Record) -> str:
    """Why a new record does not replace an old one; empty if it does."""
    if new.digests.spec != old.digests.spec:
        return "the one kept is of another spec"
    if new.time_kind != old.time_kind == MEASURED:
        return f"its time was {MEASURED}, the new one's is {new.time_kind}"
    if old.time_kind != new.time_kind == MEASURED:
        return ""
    if new.time_kind != old.time_kind:
        return f"the time kept is {old.time_kind}, the new one {new.time_kind}"
    if new.tuned != old.tuned:
        return f"the one kept is tuned for {' | '.join(quantity.shape(s) for s, _ in old.tuned)}"
    return "" if new.better_than(old) else f"the one kept takes {quantity.mark(old.us)}"


def require_same_spec(folder: Path, workload: str) -> None:
    """Raises KernelError if records of another spec with the same name are next to a folder."""
    file = folder.parent / SPEC
    others = [f for f in folder.parent.glob(f"*/{RECORD}") if f.parent != folder]
    if not file.exists() or not others:
        return
    if parse_workload(_read(file), str(file)).spec != parse_workload(workload).spec:
        raise KernelError(
            f"another spec named `{folder.parent.name}` has records here",
            where=str(file),
            hint="rename the kernel, or remove the folder",
        )


def _place(folder: Path, stored: Stored, tested: bool) -> None:
    """Writes all files of a record, and the files next to its folder."""
    record = stored.record
    names = [record.source, *(s.source for s in record.specializations)]
    files = {RECORD: record.text()}
    for number, (name, texts) in enumerate(zip(names, stored.kernels, strict=True)):
        files |= {name: texts.source, numbered(SCHEDULE, number): texts.schedule}
        if texts.variant is not None:
            files[numbered(VARIANT, number)] = texts.variant
    beside = {}
    if not _means(folder.parent / SPEC, stored.workload):
        beside[SPEC] = stored.workload
    if tested:
        beside[BUILD] = BUILD_TEXT
    place(folder, files, beside)


def _means(file: Path, workload: str) -> bool:
    """Whether an existing file has the same workload. Its layout is then kept."""
    return file.exists() and parse_workload(_read(file), str(file)) == parse_workload(workload)


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise KernelError(
            f"the file cannot be read: {e}", where=str(file), hint="restore it from the repository"
        ) from None
