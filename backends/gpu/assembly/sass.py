"""Parses SASS as NVIDIA's disassembler prints it."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from backends.gpu.assembly.mix import Classifier, Code

_USAGE = re.compile(r"REG:(\d+) STACK:(\d+)")
_LINE = re.compile(
    r"^\s+/\*([0-9a-f]{4,})\*/\s+(?:@(!?U?P[T0-9]+)\s+)?([A-Z][A-Z0-9_.]*)([^;]*);", re.MULTILINE
)
_TARGET = re.compile(r"0x([0-9a-f]+)")
_NEVER = ("!PT", "!UPT")  # predicates of padding instructions
classified = Classifier(
    (
        ("matrix", r"[HIBDQOU]\w*MMA\b|UTC\w*MMA"),
        ("copy_async", r"LDGSTS|UBLK|UTMA(?!CCTL|CMDFLUSH)"),
        (
            "barrier",
            r"BAR\b|UTCBAR|DEPBAR|LDGDEPBAR|SYNCS|MEMBAR|FENCE|(CGA)?ERRBAR|WARPSYNC|WARPGROUP"
            r"|UCGABAR",
        ),
        ("shuffle", r"SHFL|REDUX|CREDUX|VOTE|MATCH"),
        ("special", r"MUFU"),
        ("shared", r"LDS|STS|ATOMS|MOVM"),
        ("load", r"LDG|LDL|LD\b"),
        ("store", r"STG|STL|ST\b|RED\b|REDG|ATOM|ATOMG"),
        (
            "other",
            r"U?MOV|CS2U?R|S2U?R|U?LDC|R2UR|BRA|BRX|EXIT|BSSY|BSYNC|BREAK|CALL|RET|YIELD|ACQBULK"
            r"|P2R|R2P|CCTL|UTMA|ELECT|NANOSLEEP|USETMAXREG|PREEXIT|DEPBAR",
        ),
        ("arithmetic", r"[A-Z]"),
    )
)


def code(cubin: Path, tool: Path, function: str = "") -> Code:
    """The code of a cubin file with one kernel, or of one function of it. Raises OSError where the
    tool fails.

    tool: NVIDIA's `cuobjdump`, which takes about 0.4 s of CPU time for any program.
    """
    chosen = ["-fun", function] if function else []
    done = subprocess.run(
        [tool, "-res-usage", "-sass", *chosen, os.fspath(cubin)], capture_output=True, text=True
    )
    if done.returncode:
        raise OSError(f"{tool.name} ended with {done.returncode}: {done.stderr.strip()[-200:]}")
    return parsed(done.stdout)


def parsed(text: str) -> Code:
    """Parses a listing. A loop is a backward branch, except for the branch to itself at the end."""
    usage = _USAGE.search(text)
    assert usage, "the listing does not tell the registers"
    classes: list[str] = []
    at: dict[int, int] = {}
    loops: list[tuple[int, int]] = []
    for place, predicate, name, rest in _LINE.findall(text):
        address = int(place, 16)
        at[address] = len(classes)
        if predicate in _NEVER or name == "NOP":
            continue
        if name.startswith("BRA") and (target := _TARGET.search(rest)):
            first = int(target[1], 16)
            if first == address:
                continue
            if first < address:
                loops.append((at[first], len(classes)))
        classes.append(classified(name))
    return Code(int(usage[1]), int(usage[2]), tuple(classes), tuple(loops))
