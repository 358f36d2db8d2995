"""The project's own files, and what the Python ones among them import and say."""

import ast
import os
import re
from functools import cache
from pathlib import Path

from backends.registry import backend_names

ROOT = Path(__file__).parent.parent
FOLDERS = (
    "ir",
    "backends",
    "templates",
    "search",
    "speciate",
    "frontends",
    "machines",
    "kernels_generated",
    "benchmarks",
    "examples",
    "testing",
    "tests",
    "tools",
    "bazel",
)
SKIPPED = {"__pycache__", "testdata", "golden"}
TESTING = {"pytest", "hypothesis"}


@cache
def files(*endings):
    """The project's own files below its folders, relative to the root."""
    found = (p.relative_to(ROOT) for top in FOLDERS for p in (ROOT / top).rglob("*"))
    kept = (p for p in found if not any(x in SKIPPED or x.startswith(".") for x in p.parts))
    return tuple(sorted(p for p in kept if p.name.endswith(endings) and not is_generated(p)))


def is_generated(path):
    """Whether a file is a kernel that a search wrote."""
    return path.parts[0] == "kernels_generated" and len(path.parts) > 2


@cache
def is_test(path):
    """Whether a file is a test, a conftest, or what only tests can use. Cheats are tests, which a device
    runs without a test runner."""
    if path.name.endswith("_test.py") or path.name == "conftest.py":
        return True
    if path.parts[:2] == ("tests", "cheats"):
        return True
    return path.suffix == ".py" and any(m.split("/")[0] in TESTING for m, _ in imported(path))


@cache
def tree(path):
    """The syntax of a Python file."""
    return ast.parse((ROOT / path).read_text(encoding="utf-8"), str(path))


@cache
def backends():
    """The names of all backends."""
    return frozenset(backend_names(for_tests=True))


@cache
def modules():
    """All Python modules but tests."""
    return tuple(p for p in files(".py") if not is_test(p))


def backend_of(path):
    """The backend whose folder a path is in; None for shared code."""
    parts = Path(path).parts
    inside = len(parts) > 2 and parts[0] in ("backends", "templates")
    return parts[1] if inside and parts[1] in backends() else None


def statements(node):
    """All statements of a file or a statement, those within others too."""
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        for inner in getattr(node, name, ()):
            yield inner
            yield from statements(inner)


@cache
def imported(path):
    """Every module that a file imports, wherever in it, with its line: `a.b` as `a/b`."""
    found = []
    for node in statements(tree(path)):
        if isinstance(node, ast.Import):
            found += [(alias.name.replace(".", "/"), node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are written from the root"
            base = node.module.replace(".", "/")
            for alias in node.names:
                inner = f"{base}/{alias.name}"
                is_module = (ROOT / f"{inner}.py").exists() or (ROOT / inner).is_dir()
                found.append((inner if is_module else base, node.lineno))
    return found


def own_imports(path):
    """Those of the project's own modules."""
    return [(m, line) for m, line in imported(path) if m.split("/")[0] in FOLDERS]


def words(names):
    """A pattern for any of some names as whole words; `_` parts words of an identifier."""
    either = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    return re.compile(rf"(?<![A-Za-z0-9])({either})(?![A-Za-z0-9])")


def spoken(path):
    """What a Python file says in identifiers and strings, with lines; no comments."""
    for node in ast.walk(tree(path)):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value, line
        for field in ("id", "attr", "name", "arg", "asname", "module"):
            value = getattr(node, field, None)
            if isinstance(value, str):
                yield value, line


def said(path):
    """The same for any file: a template says all its text."""
    if path.suffix in (".py", ".bzl"):
        return spoken(path)
    return _numbered((ROOT / path).read_text(encoding="utf-8"))


def _numbered(text):
    return ((line, number) for number, line in enumerate(text.splitlines(), 1))


def found_words(paths, pattern):
    """Where files say a word, `/dev/null` aside, which is no backend."""
    return [
        f"{path}:{line}: {match[0]}"
        for path in paths
        for text, line in said(path)
        for match in [pattern.search(text.replace(os.devnull, ""))]
        if match
    ]
