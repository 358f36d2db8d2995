"""Small specs for tests of rewrites, and their equations as text."""

from __future__ import annotations

from pathlib import Path

from ir.parse.parse import parse_spec, parse_workload
from ir.print import spec_text
from ir.spec import Spec
from ir.workload import Workload


def _read(folder: str) -> dict[str, Workload]:
    found = sorted((Path(__file__).parent.parent / folder).glob("*.kir"))
    return {p.stem: parse_workload(p.read_text(), p.name) for p in found}


WORKLOADS = _read("library")
RECURRENT = _read("testdata/recurrent")


def spec_of(lines: str, signature: str, result: str) -> Spec:
    """A spec that returns y. lines: its equations, separated by `;`."""
    body = "".join(f"    {line.strip()}\n" for line in lines.split(";"))
    return parse_spec(f'def s({signature}) -> {result}:\n    """Doc."""\n{body}    return y\n')


def equations(spec: Spec) -> list[str]:
    """The equations as texts."""
    return [line.strip() for line in spec_text(spec).splitlines() if _states(line)]


def _states(line: str) -> bool:
    return "] = " in line or "]: [" in line
