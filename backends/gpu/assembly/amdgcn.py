"""AMD assembly: registers, spills and instruction classes of a compiled program."""

from __future__ import annotations

import re

from backends.gpu.assembly.mix import Classifier, Code

_LABEL = re.compile(r"^(\.L\w+):")
_LINE = re.compile(r"^\t([sv]_\w+|ds_\w+|buffer_\w+|global_\w+|flat_\w+|scratch_\w+)\s*([^;\n]*)")
_TO_SHARED = re.compile(r"\blds\b")
_ACROSS_LANES = re.compile(r"\b(quad_perm|row_\w+|wave_\w+)\b")
_class = Classifier(
    (
        ("matrix", r"v_(mfma|smfmac|wmma|swmmac)"),
        ("barrier", r"s_barrier|buffer_wb|buffer_inv"),
        ("shuffle", r"ds_(bpermute|permute|swizzle)|v_permlane|v_readlane|v_readfirstlane|\w+_dpp"),
        ("shared", r"ds_"),
        ("load", r"(buffer|global|flat|scratch)_load"),
        ("store", r"(buffer|global|flat|scratch)_(store|atomic)"),
        ("special", r"v_(exp|log|rcp|rsq|sqrt|sin|cos)"),
        (
            "other",
            r"s_(wait|load|mov|cmov|branch|cbranch|endpgm|nop|sleep|set|code|get|trap|sendmsg"
            r"|inst|swap)"
            r"|v_(mov|accvgpr|nop|swap|writelane)",
        ),
        ("arithmetic", r"[sv]_"),
    )
)


def parsed(text: str) -> Code:
    """Parses the assembly of a module with one kernel. A loop is a backward branch."""
    classes: list[str] = []
    labels: dict[str, int] = {}
    loops: list[tuple[int, int]] = []
    for line in text.splitlines():
        if label := _LABEL.match(line):
            labels[label[1]] = len(classes)
        elif found := _LINE.match(line):
            name, rest = found.groups()
            if "branch" in name and rest.strip() in labels:
                loops.append((labels[rest.strip()], len(classes)))
            classes.append(_of(name, rest))
    return Code(
        registers=_number(text, "vgpr_count"),
        spills=_number(text, "private_segment_fixed_size"),
        classes=tuple(classes),
        loops=tuple(loops),
    )


def _of(name: str, operands: str) -> str:
    if _ACROSS_LANES.search(operands) and name.startswith("v_"):
        return "shuffle"
    found = _class(name)
    return "copy_async" if found == "load" and _TO_SHARED.search(operands) else found


def _number(text: str, name: str) -> int:
    """A number from the kernel's metadata; `vgpr_count` is the total of both register files."""
    found = re.search(rf"^\s+\.{name}:\s*(\d+)", text, re.MULTILINE)
    assert found, f"the assembly does not tell {name}"
    return int(found[1])
