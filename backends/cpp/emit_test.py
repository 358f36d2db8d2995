"""Golden texts of emitted kernels, and the document that quotes them and the backend."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from backends.cpp.backend import Cpp
from backends.registry import REGISTRY, target
from ir.lower.lower import lower
from ir.nest.nest import Statement
from ir.parse.parse import parse_schedule
from ir.samples.samples import workload

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "add_a_backend.md").read_text(encoding="utf-8")
MACHINE = target("cpu")
SCHEDULES = {
    "row_softmax": ("softmax", "tile(m, size=4)\nplace(m.outer, level=grid)"),
    "tiled_matmul": (
        "matmul_bias_gelu",
        "tile(m, size=64)\ntile(n, size=128)\ntile(k, size=256)\nplace(m.outer, level=grid)\n"
        "place(n.outer, level=grid)\nplace(k.outer, level=loop)\ncompute(acc, unit=matrix)",
    ),
    "jagged_sum": (
        "embedding_bag",
        "tile(b, size=1)\ntile(l, size=32)\nplace(b.outer, level=grid)",
    ),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_an_emitted_kernel_is_the_golden_one(name, golden):
    kernel, decisions = SCHEDULES[name]
    w = workload(kernel)
    nest = lower(w.spec, parse_schedule(f"schedule({kernel})\n{decisions}\n"), MACHINE, w.tune)
    text = Cpp(REGISTRY.manifest("cpp")).emit(nest, MACHINE)
    golden(f"backends/cpp/golden/{name}.cc", text)


def quotes() -> list[tuple[str, str]]:
    """The blocks of code that the document says are of a file: (file, text)."""
    return re.findall(r"<!-- of (\S+) -->\n```\w*\n(.*?)```", GUIDE, re.DOTALL)


def test_the_document_quotes_what_is_there():
    found = quotes()
    assert len(found) >= 5
    for file, text in found:
        assert text in (ROOT / file).read_text(encoding="utf-8"), f"{file} has no longer:\n{text}"


def test_the_document_says_what_every_statement_means():
    names = {s.__name__ for s in Statement.__subclasses__()}
    rows = set(re.findall(r"^\| `(\w+)` \|", GUIDE, re.MULTILINE))
    assert len(names) > 8 and names <= rows, names - rows
