"""The types of calls of packages that take long to read, which tests/style_test.py leaves out."""

import re

import pytest

from tests.source_tree import ROOT
from tests.style_test import run

LEFT_OUT = ["openai", "ribs"]


@pytest.mark.parametrize("package", LEFT_OUT)
def test_types_are_right_where_a_package_is_used(package, tmp_path):
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    read = text.replace(f', "{package}.*"', "")
    assert read != text
    config = tmp_path / "pyproject.toml"
    config.write_text(read, encoding="utf-8")
    used = re.compile(rf"^\s*(?:import|from) {package}\b", re.M)
    files = [
        str(f)
        for f in (ROOT / "search").rglob("*.py")
        if not f.name.endswith("_test.py") and used.search(f.read_text(encoding="utf-8"))
    ]
    assert files
    assert run("mypy", f"--cache-dir={tmp_path}", f"--config-file={config}", *files) == ""
