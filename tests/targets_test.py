"""Each test file is run by one target of `bazel test //...`.

BUILD files are read as what they are, calls of Python's grammar: the macros of bazel/ run here
with rules that note their arguments. A test file that no target has would never fail.
"""

import os
import re
from collections import Counter
from pathlib import Path

import pytest

from tests.source_tree import ROOT

RULES = (  # whose rules make no tests
    *("bytecode.bzl", "pybind.bzl", "code_object.bzl"),
    *("compiled_templates.bzl", "unicode_tables.bzl"),
)
DATA = ("testdata", "golden")
SLOW = {"-m", "slow"}  # arguments of a target that runs the tests that have this mark
MARK = re.compile(r"mark\.slow\b|from testing\.slow import")


class Package:
    """A package as its BUILD file sees it. tests: the files of each target that runs without being
    named.  slow: those of which a target runs the slow tests.  records: those that are checked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = sorted(_files(folder))
        self.tests: list[list[str]] = []
        self.slow: list[str] = []
        self.records: list[str] = []
        self._loaded: dict[str, dict] = {}

    def read(self) -> "Package":
        """Runs the BUILD file."""
        self._run(self.folder / "BUILD.bazel")
        return self

    def glob(self, include, exclude=(), allow_empty=False):
        """Bazel's: the files of this package that fit a pattern."""
        kept = [f for f in self.files if any(map(_pattern(f), include))]
        return [f for f in kept if not any(map(_pattern(f), exclude))]

    def test(self, srcs, args=(), tags=(), **_):
        """Notes a test target."""
        if "manual" in tags:
            return
        files = [src for src in srcs if not src.startswith("//")]
        if SLOW <= {*args}:
            self.slow += files
            return
        self.tests.append(files)
        words = [re.fullmatch(r"--record=\$\(rootpath (.*)\)", arg) for arg in args]
        self.records += [word[1] for word in words if word]

    def _run(self, file: Path) -> dict:
        rules = {"py_test": self.test, "cc_test": self.test}
        names = {
            **rules,
            "native": self,
            "glob": self.glob,
            "fail": pytest.fail,
            "load": lambda *given: names.update(self._load(rules, *given)),
        }
        for rule in ("package", "package_group", "exports_files", "filegroup", "py_library"):
            names[rule] = _nothing
        exec(compile(file.read_text(encoding="utf-8"), str(file), "exec"), names)
        return names

    def _load(self, rules: dict, label: str, *wanted: str) -> dict:
        """What a load() brings; a rule that makes no test does nothing."""
        file = ROOT / "bazel" / label.rpartition(":")[2]
        if label.startswith("@") or file.name in RULES:
            return {name: rules.get(name, _nothing) for name in wanted}
        if file.name not in self._loaded:
            self._loaded[file.name] = self._run(file)
        return {name: self._loaded[file.name][name] for name in wanted}

    def filegroup(self, **_) -> None:
        """No test."""


def _nothing(*_, **__) -> None:
    return None


def _files(folder: Path):
    """The files of a package, relative to it: a folder with a BUILD file is another package."""
    for here, folders, names in os.walk(folder):
        folders[:] = [
            f
            for f in folders
            if f[0] not in "._"
            and not f.startswith("bazel-")
            and not (Path(here) / f / "BUILD.bazel").exists()
        ]
        yield from (str((Path(here) / name).relative_to(folder)) for name in names)


def _pattern(file: str):
    def fits(glob: str) -> bool:
        parts = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*"}
        text = re.sub(r"\*\*/|\*\*|\*|[^*]+", lambda m: parts.get(m[0], re.escape(m[0])), glob)
        return re.fullmatch(text, file) is not None

    return fits


@pytest.fixture(scope="module")
def packages():
    folders = [ROOT, *(ROOT / f for f in sorted({Path(f).parent for f in _all("BUILD.bazel")}))]
    return [Package(f).read() for f in folders if (f / "BUILD.bazel").exists()]


def _all(ending: str) -> list[str]:
    """The files of the tree whose names end so."""
    found = []
    for here, folders, names in os.walk(ROOT):
        folders[:] = [f for f in folders if f[0] not in "._" and not f.startswith("bazel-")]
        found += [str((Path(here) / n).relative_to(ROOT)) for n in names if n.endswith(ending)]
    return sorted(found)


def of_tree(package: Package, file: str) -> str:
    return str((package.folder / file).relative_to(ROOT))


def test_each_test_file_is_run_by_one_target(packages):
    run = Counter(of_tree(p, f) for p in packages for files in p.tests for f in files)
    there = [
        f for e in ("_test.py", "_test.cc") for f in _all(e) if not set(DATA) & {*Path(f).parts}
    ]
    assert len(there) > 100
    assert [f for f in there if run[f] != 1] == []
    assert set(run) <= set(there)


def test_slow_tests_of_a_file_are_run_by_one_target(packages):
    run = Counter(of_tree(p, f) for p in packages for f in p.slow)
    marked = [f for f in _all("_test.py") if MARK.search((ROOT / f).read_text(encoding="utf-8"))]
    own = {str(Path(__file__).relative_to(ROOT)), "testing/slow_test.py"}
    assert run == Counter(f for f in marked if f not in own)


def test_each_record_is_checked_by_one_target(packages):
    run = Counter(of_tree(p, f) for p in packages for f in p.records)
    there = [f for f in _all("record.toml") if f.startswith("kernels_generated/")]
    assert run == Counter(there)
