"""Retired words stay out of code, documents and prompts: the field has words for what they said."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ENDINGS = {".py", ".j2", ".md", ".toml", ".cc", ".h", ".sched", ".kir", ".bazel", ".bzl"}
# What quotes the past, or lists the retired words.
NOT_READ = ("CHANGELOG.md", "docs/device_suite.md", "docs/glossary.md", "tests/vocabulary_test.py")
SIMD = (
    "*/sim/*",
    "backends/targets/npu*",
    "backends/gpu/assembly/amdgcn*",
    "backends/table_test.py",
)

# LLVM calls AMD's private memory so.
SCRATCH = ("*/assembly/amdgcn*", "*/hip/*")


def word(text: str) -> str:
    """A word of prose or a part of an identifier, in any case of its first letter."""
    return rf"(?<![a-z])(?i:{text[0]})(?:{text[1:]})(?![a-z])"


# Each retired word, the field's, and the files in which it has a meaning of the field's own.
RETIRED = {
    word("folds?(?!_constants)"): ("reduction", ()),
    r"(?<!constants )" + word("folded"): ("reduced", ()),
    word("lanes?"): ("thread, or number of warps", SIMD),
    word("granules?"): ("sector, or granularity", ()),
    word("neutral"): ("identity element", ()),
    word("extremes?"): ("maximum or minimum, or extremum", ()),
    r"(?i)(?<!round[ -])" + word("trips?"): ("iteration", ()),
    # CSS collapses borders, and KernelBench has problems whose equations collapse.
    word("collapse[sd]?|collapsing"): ("flatten", ("*/style.css.j2", "*/race.py", "tools/suite*")),
    word("defer(?:s|red|rals?)?"): ("hoist", ()),
    word("persists?"): ("persistent", ()),
    word("unseen"): ("held out", ()),
    word("formulations?"): ("variant", ()),
    word("scratch"): ("shared memory, local memory, or a temporary folder", SCRATCH),
    word("bands?"): ("group of tiles (L2 swizzle)", ()),
    word("parted"): ("split, or separated", ()),
    r"(?i)tile processor": ("multiprocessor, processing element or processor", ()),
    r"(?i)copy engine": ("TMA, or DMA engine", ("benchmarks/kernelbench/*",)),
    r"(?i)loaded ahead": ("prefetched", ()),
    r"(?i)compulsory bytes": ("compulsory traffic", ()),
    r"(?i)once block": ("prologue", ()),
    r"(?i)ring of slots": ("circular buffer", ()),
    r"(?i)turned copy": ("transposed copy", ()),
}


def files() -> list[Path]:
    """Every text of the tree but results, which say what was said then."""
    found = []
    for path in sorted(ROOT.rglob("*")):
        name = path.relative_to(ROOT).as_posix()
        hidden = any(part.startswith((".", "bazel-")) for part in path.relative_to(ROOT).parts)
        if path.suffix in ENDINGS and not hidden and name not in NOT_READ:
            found.append(path)
    return found


def faults(name: str, text: str) -> list[str]:
    """What is retired in a file, a line each."""
    found = []
    for pattern, (instead, allowed) in RETIRED.items():
        if not any(fnmatch(name, one) for one in allowed):
            for seen in re.finditer(pattern, text):
                line = text.count("\n", 0, seen.start()) + 1
                found.append(f"{name}:{line}: `{seen[0]}` is retired; the field says {instead}")
    return found


def test_no_retired_word_is_used():
    texts = files()
    assert len(texts) > 600
    found = []
    for path in texts:
        name = path.relative_to(ROOT).as_posix()
        found += faults(name, path.read_text(encoding="utf-8")) + faults(name, name)
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("text", "retired"),
    [
        ("def fold(x):", True),
        ("row_folds = 1", True),
        ("class Fold:", True),
        ("FoldedRow", True),
        ("a folder, unfolded, manifold", False),
        ("constants folded; fold_constants(a)", False),
        ("nlanes = 32", False),
        ("lanes(y, count=32)", True),
        ("a round trip", False),
        ("of the last trip", True),
        ("The copy engine moves it", True),
        ("bytes of `scratch`", True),
        ("in_band = 1", True),
        ("bandwidth, departed", False),
    ],
)
def test_words_are_found_as_words(text, retired):
    assert bool(faults("x.py", text)) is retired
