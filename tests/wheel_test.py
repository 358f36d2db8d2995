"""What the wheel holds, and what becomes of imports in it."""

import ast
import re
from functools import cache

import pytest

from tools.wheel import FOLDERS, PACKAGE, below_package, wheel_files

NAMES = re.compile(rf"({'|'.join((*FOLDERS, 'tools', 'testing', 'tests'))})\.[a-z_]+(\.[a-z_]+)*")
# What sources of kernels import, and `compiler.py` makes of it.
SAID = {"backends.cutedsl.kernel"}


@cache
def built():
    """The Python files of the wheel by the path of their module."""
    found = {str(inside): source for source, inside in wheel_files()}
    texts = {n: f.read_text(encoding="utf-8") for n, f in found.items() if n.endswith(".py")}
    return {n: ast.parse(below_package(text, n)) for n, text in texts.items()}


def test_imports_name_the_package():
    text = "import search\nfrom ir.spec import (\n    Spec,\n)\n\n\ndef f():\n    from backends import x\n"
    assert below_package(text, "x.py") == (
        "from speciate import search\nfrom speciate.ir.spec import (\n    Spec,\n)\n\n\n"
        "def f():\n    from speciate.backends import x\n"
    )
    kept = "import os\nfrom torch import nn\nfrom irregular import x\nimport speciate\n"
    assert below_package(kept, "x.py") == kept


@pytest.mark.parametrize("text", ["import ir.spec\n", "import ir, os\n"])
def test_imports_that_bind_a_folder_s_name_are_refused(text):
    with pytest.raises(ValueError, match="x.py:1: write `from ... import ...`"):
        below_package(text, "x.py")


def test_everything_lies_in_one_package_without_tests():
    names = [str(inside) for _, inside in wheel_files()]
    assert {name.split("/")[0] for name in names} == {PACKAGE}
    assert not [n for n in names if "_test." in n or "/testing/" in n or "/testdata/" in n]
    for wanted in (
        "__init__.py",
        "ir/library/softmax.kir",
        "backends/targets/cpu.toml",
        "templates/cpp/kernel.cc.j2",
        "kernels_generated/record_check.py",
    ):
        assert f"{PACKAGE}/{wanted}" in names


def test_every_import_finds_a_module_of_the_wheel():
    trees = built()
    modules = {n.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for n in trees}
    for name, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                first = node.module.split(".")[0]
                assert first not in FOLDERS and first not in ("tools", "testing", "tests"), name
                if first == PACKAGE and node.module != PACKAGE:
                    assert node.module in modules, f"{name}: {node.module}"


def test_no_text_names_a_module_by_its_place_in_the_tree():
    """Such a name would not be found in the wheel: `__package__` says the place."""
    said = {
        f"{name}:{node.lineno}: {node.value}"
        for name, tree in built().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if NAMES.fullmatch(node.value.rstrip(".")) and node.value not in SAID
    }
    assert not said
