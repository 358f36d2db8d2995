"""Declarations: the functions of a header without their bodies, and example lines that use them."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

_STARTS = ("template", "inline", "constexpr", "  inline", "#define assume")
_USING = re.compile(r"using (\w+)::(\w+);(.*)")
_CALLED = re.compile(r"(\w+) ?\(")
_FENCE = re.compile(r"^```(c\w+|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def declared(header: str, names: Collection[str], others: Mapping[str, str] = {}) -> str:
    """The functions of a header with some names: comments and signatures, in order.

    others: by namespace, headers whose functions a `using` imports. A macro that defines functions
    is shown as the function at the start of its body.
    """
    lines = (line for chunk in _chunks(header, names, others) for line in chunk)
    return "\n".join(dict.fromkeys(lines))


def _chunks(header: str, names: Collection[str], others: Mapping[str, str]) -> Iterator[list[str]]:
    lines = header.splitlines()
    comments: list[str] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        if line.startswith("//") and not line.startswith("// --"):
            comments.append(line)
            at += 1
            continue
        if found := _USING.match(line):
            space, name, _ = found.groups()
            if name in names:
                theirs = declared(others.get(space, ""), (name,)).splitlines()
                yield [*comments, *(theirs or [f"void {name}();"])]
            comments = []
            at += 1
            continue
        if line.startswith(_STARTS) or line.startswith("#define "):
            text, at = _signature(lines, at)
            name = _name(text)
            if name in names:
                yield [*comments, f"{text};"]
            comments = comments if not name and (not text or "struct" in text) else []
            continue
        if not line.startswith("#") and not line.startswith(" "):
            comments = [] if not line.strip() else comments
        at += 1


def _signature(lines: list[str], at: int) -> tuple[str, int]:
    """The text of a definition up to its body, and the number of the next line."""
    macro = lines[at].startswith("#define ") and not lines[at].startswith("#define assume")
    found: list[str] = []
    while at < len(lines):
        line = lines[at].rstrip("\\").rstrip()
        at += 1
        if macro and not found and "inline" not in line and "template" not in line:
            if not lines[at - 1].endswith("\\"):
                return "", at
            continue
        found.append(line.strip())
        if "{" in line or line.rstrip().endswith((";", ")")) and not line.startswith("template"):
            if "{" in line or line.endswith(";") or line.startswith("#define assume"):
                break
    text = " ".join(found).partition(" {")[0].partition(" __builtin_assume")[0]
    return re.sub(r"\s+", " ", text).removeprefix("#define ").rstrip(";"), at


def _name(signature: str) -> str:
    """The declared name of a signature: the word before its parameters, after any template
    parameters."""
    bare = re.sub(r"^template <.*?> (?=inline|constexpr|requires)", "", signature)
    found = _CALLED.search(bare)
    return found[1].partition("##")[0] if found else ""


def listed(words: Collection[str]) -> str:
    """Sorted words, in Markdown."""
    return f"`{' '.join(sorted(words))}`"


def used(notes: Path, names: Collection[str]) -> dict[str, str]:
    """For each name, a statement that calls it, from the code blocks of a folder's documents, which
    tests compile. It is the shortest of the first document that has one."""
    found: dict[str, str] = {}
    for language, block in _blocks(notes):
        split = _python_statements if language == "python" else _statements
        statements = sorted(split(block), key=len)
        for name in names:
            call = re.compile(rf"(?<!\w){re.escape(name)}\s*(<[^;]*>)?\(")
            own = next((text for text in statements if call.search(text)), None)
            if own is not None:
                found.setdefault(name, own)
    return found


def whole(notes: Path, mark: str) -> str:
    """The first code block of a folder's documents that contains a text; empty if there is none."""
    return next((block for _, block in _blocks(notes) if mark in block), "")


def _blocks(notes: Path) -> Iterator[tuple[str, str]]:
    for file in sorted(notes.glob("*.md")):
        yield from _FENCE.findall(file.read_text(encoding="utf-8"))


def _statements(block: str) -> Iterator[str]:
    """The C++ statements of a block, each on one line, without comments and directives."""
    now: list[str] = []
    for line in block.splitlines():
        text = line.partition("  //")[0].strip()
        if text.startswith("#"):
            continue
        now.append(text)
        if text.endswith((";", "{", "}")) or not text:
            yield " ".join(now).strip()
            now = []


def _python_statements(block: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(block)):
        if isinstance(node, ast.Assign | ast.AugAssign | ast.Expr | ast.Assert):
            yield ast.unparse(node)
        elif isinstance(node, ast.For):
            yield f"for {ast.unparse(node.target)} in {ast.unparse(node.iter)}: ..."
