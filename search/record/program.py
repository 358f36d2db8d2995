"""A program record: the best known way to compute a network, so that another process can repeat it.

It is next to the records of kernels, in `programs/NETWORK/TARGET.BACKEND.toml`, and names these by
their digests. NETWORK is a digest of the network before its partition: its equations with their
shapes, its aliases of other shapes, and the inputs that are constant between calls.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ir.digest import text_digest
from ir.errors import KernelError
from ir.print import spec_text
from ir.spec import Spec
from search.core.toml_text import toml_text

FOLDER = "programs"
_HINT = "evolve the module again, or remove the file"


@dataclass(frozen=True, slots=True)
class KernelUse:
    """A kernel of a program."""

    name: str
    calls: int  # launches in one call of the program
    # Digests of its equations, its schedule and its source
    spec: str
    schedule: str
    source: str
    backend: str
    us: float  # time of one launch
    first_us: float  # time with its seed schedule
    evaluations: int  # evaluations of its search; 0: it has its seed schedule
    time_kind: str
    correct_by: str  # how a search checked it; empty if there was none
    # digest of a source that a search found but that is slower in a call
    passed_over: str = ""


@dataclass(frozen=True, slots=True)
class ProgramRecord:
    """The result for a network on a target."""

    name: str  # name of the module, for a person
    network: str  # digest; see the module docstring
    target: str
    backend: str
    command: str  # the command that made it
    device: str  # device of measured times; empty if none was measured
    toolchain: str
    inputs: tuple[str, ...]  # inputs of a call: `NAME: DTYPE[SIZES]`
    choices: Mapping[str, bool]  # choices of the partition (`ir/partition/choices.py`)
    kernels: tuple[KernelUse, ...]  # in the order of their first step
    # Microseconds of a call. `sum_us` is the sum of the kernels' own times. `us` and `graph_us` are
    # times of the whole call, with separate launches and as a device graph; `first_us` and
    # `first_graph_us` are those before the search. None if a call is not measured as a whole.
    sum_us: float
    first_sum_us: float
    time_kind: str  # kind of these sums
    us: float | None = None
    graph_us: float | None = None
    first_us: float | None = None
    first_graph_us: float | None = None
    seal: str = field(default="", compare=False)  # digest of all fields above as they were written

    @property
    def best_us(self) -> float:
        """The fastest time of a call; the sum of its kernels if no call was measured."""
        return min((t for t in (self.us, self.graph_us) if t is not None), default=self.sum_us)

    @property
    def passed_over(self) -> frozenset[str]:
        """The digests of sources that are not used because another kernel is faster in a call."""
        return frozenset(each.passed_over for each in self.kernels if each.passed_over)

    def text(self) -> str:
        """The text of its file. `read_program` returns an equal record."""
        return toml_text({"seal": self.sealed(), **self._table()})

    def sealed(self) -> str:
        """The digest of all its fields."""
        return text_digest(toml_text(self._table()))

    def _table(self) -> dict[str, Any]:
        table = asdict(self)
        del table["seal"]
        for each in table["kernels"]:
            if not each["passed_over"]:
                del each["passed_over"]
        # TOML requires that a sub-table comes last.
        return {k: v for k, v in table.items() if k != "choices"} | {"choices": table["choices"]}


def network_digest(
    spec: Spec, aliases: Mapping[str, str], fixed: Collection[str], outside: Collection[str] = ()
) -> str:
    """The digest of a network before its partition.

    fixed: inputs that are constant between calls. outside: calls that no kernel computes.
    """
    plain = spec_text(replace(spec, name="network", doc="network"))
    return text_digest(json.dumps([plain, sorted(aliases.items()), sorted(fixed), list(outside)]))


def program_file(root: Path, network: str, target: str, backend: str) -> Path:
    """The file of a record below a folder of records."""
    return root / FOLDER / network / f"{target}.{backend}.toml"


def write_program(root: Path, record: ProgramRecord) -> Path:
    """Writes a record atomically in place of an earlier one of the same network. Returns its file.
    Raises KernelError if the folder cannot be written."""
    file = program_file(root, record.network, record.target, record.backend)
    part = file.with_suffix(".part")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(record.text(), encoding="utf-8")
        part.replace(file)
    except OSError as error:
        raise KernelError(
            f"the program's record cannot be written: {error.strerror}",
            where=str(file),
            hint="give a folder that you may write to",
        ) from error
    return file


def read_program(file: Path) -> ProgramRecord | None:
    """The record in a file; None if there is no file. Raises KernelError if it cannot be read, or
    was edited by hand."""
    if not file.is_file():
        return None
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
        table["kernels"] = tuple(KernelUse(**each) for each in table["kernels"])
        table["inputs"] = tuple(table["inputs"])
        found = ProgramRecord(**{"choices": {}, **table})
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise KernelError(
            f"this is no record of a program: {error}", where=str(file), hint=_HINT
        ) from None
    if found.seal != found.sealed():
        raise KernelError("it was edited by hand", where=str(file), hint=_HINT)
    return found
