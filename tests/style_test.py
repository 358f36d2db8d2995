"""The tree as ruff and mypy see it, in the versions of requirements.lock.

An environment that was made without the lock, as on a GPU machine, may lack them or have others,
which find other faults: there these tests say so and are skipped.
"""

import re
import subprocess
import sys
from importlib import metadata

import pytest

from tests.source_tree import FOLDERS, ROOT


def locked(package):
    """The version of a package in the lock."""
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    return re.search(rf"^{package}==(\S+)$", text, re.M)[1]


def run(package, *words):
    """What a tool says of the tree; nothing where all is well."""
    try:
        here = metadata.version(package)
    except metadata.PackageNotFoundError:
        here = None
    if here != locked(package):
        pytest.skip(f"{package} {here} is here, {locked(package)} is in requirements.lock")
    done = subprocess.run(
        [sys.executable, "-m", package, *words], cwd=ROOT, capture_output=True, text=True
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr


@pytest.mark.parametrize("words", [("check",), ("format", "--check")], ids=" ".join)
def test_the_tree_is_as_ruff_would_write_it(words):
    assert run("ruff", *words, "--no-cache", *FOLDERS) == ""


def test_types_are_right(tmp_path):
    """Of the files that pyproject.toml names."""
    assert run("mypy", f"--cache-dir={tmp_path}") == ""


@pytest.mark.slow
@pytest.mark.parametrize("package", ["openai", "ribs"])
def test_types_are_right_where_a_package_is_used_that_takes_long_to_read(package, tmp_path):
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    read = text.replace(f', "{package}.*"', "")
    assert read != text
    config = tmp_path / "pyproject.toml"
    config.write_text(read, encoding="utf-8")
    used = re.compile(rf"^\s*(?:import|from) {package}\b", re.M)
    places = [f for f in (ROOT / "search").rglob("*.py") if not f.name.endswith("_test.py")]
    found = [str(f) for f in places if used.search(f.read_text(encoding="utf-8"))]
    assert found
    assert run("mypy", f"--cache-dir={tmp_path}", f"--config-file={config}", *found) == ""
