"""How long things are and what they may be called.

Tests may have functions as long as their cases, and name what they test; benchmarks may name
anything. Generated kernels are as long as their schedules make them.
"""

import ast
import re

import pytest

from backends.registry import backend_names, target_names
from ir.functions import POINTWISE, SCANS
from tests.source_tree import ROOT, backend_of, files, found_words, is_test, modules, tree, words

MOST_LINES = 500
MOST_FUNCTION_LINES = 60
MEASURED = (".py", ".cc", ".h", ".bzl", ".j2")
DEVICES = {
    "cpu",
    "cuda",
    "hip",
}  # targets and backends whose name is a word of torch and of operating systems too
NO_NOUN = {"utils", "util", "helpers", "helper", "common", "misc"}


@pytest.mark.parametrize("ending", MEASURED)
def test_files_are_short(ending):
    wrong = [
        f"{path}: {count} lines"
        for path in files(ending)
        if (count := (ROOT / path).read_text(encoding="utf-8").count("\n")) > MOST_LINES
    ]
    assert not wrong, "\n".join(wrong)


def test_functions_are_short():
    wrong = [
        f"{path}:{node.lineno}: {node.name} has {length} lines"
        for path in modules()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (length := node.end_lineno - node.lineno + 1) > MOST_FUNCTION_LINES
    ]
    assert not wrong, "\n".join(wrong)


def test_every_file_has_a_noun():
    wrong = [str(p) for p in files("") if p.name.partition(".")[0].lower() in NO_NOUN]
    assert not wrong, "\n".join(wrong)


def test_shared_code_names_no_target_and_no_backend():
    names = {*backend_names(for_tests=True), *target_names(for_tests=True)} - DEVICES
    shared = [
        p
        for p in files(".py", ".bzl")
        if not is_test(p) and p.parts[0] != "benchmarks" and backend_of(p) is None
    ]
    wrong = found_words(shared, words(names))
    # In shared templates only real ones count: a word for nothing is one of JavaScript's too.
    wrong += [at for p in shared if p.suffix == ".py" for at in targets_meant(p, tree(p))]
    real = {*backend_names(), *target_names()} - DEVICES
    wrong += found_words([p for p in files(".j2") if backend_of(p) is None], words(real))
    assert not wrong, "\n".join(wrong)


def targets_meant(path, syntax):
    """Where a file says a word of `DEVICES` and means the target: it is compared with a name, is
    given as a target, or follows that word."""

    def device(node):
        return isinstance(node, ast.Constant) and node.value in DEVICES

    def names_targets(node):
        said = getattr(node, "attr", getattr(node, "id", getattr(node, "arg", None)))
        return said in ("name", "target", "targets", "machine", "backend", "chip")

    for node in ast.walk(syntax):
        found = False
        if isinstance(node, ast.Compare):
            sides = (node.left, *node.comparators)
            inner = [n for side in sides for n in ast.walk(side)]
            found = any(map(device, inner)) and any(map(names_targets, sides))
        elif isinstance(node, ast.Call):
            found = names_targets(node.func) and any(map(device, node.args))
        elif isinstance(node, ast.keyword):
            found = names_targets(node) and device(node.value)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found = bool(re.search(rf"targets?\W({'|'.join(DEVICES)})\b", node.value))
        if found:
            yield f"{path}:{getattr(node, 'lineno', 0)}: a target"


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ('place = "cpu"', 0),
        ('x.device.type == "cpu"', 0),
        ("Limits(cpu=60).cpu", 0),
        ('machine.name == "cpu"', 1),
        ('target in ("npu", "cpu")', 1),
        ('target("cpu")', 1),
        ('compile_module(m, target="cpu")', 1),
        ('run("--target=cpu")', 1),
    ],
)
def test_a_device_of_torch_is_told_from_a_target(text, meant):
    assert len(list(targets_meant("x.py", ast.parse(text)))) == meant


def kernel_names():
    """The library's kernels, but for those that are words of the language itself."""
    language = {*POINTWISE, *SCANS, *SCANS.values()}
    return {p.stem for p in (ROOT / "ir" / "library").glob("*.kir")} - language


def test_nothing_that_makes_kernels_knows_one_by_name():
    names = kernel_names()
    assert names, "ir/library/ holds no kernels"
    makers = [
        p
        for p in files(".py", ".j2", ".cc", ".h")
        if p.parts[0] in ("ir", "machines", "backends", "templates")
        and not is_test(p)
        and not p.name.endswith(("_test.cc", "_test.h"))
    ]
    wrong = found_words(makers, words(names))
    assert not wrong, "\n".join(wrong)


def test_the_search_for_words_takes_whole_ones():
    pattern = words({"chip", "chip_small"})
    assert pattern.search("--target=chip_small")[0] == "chip_small"
    assert pattern.search("for_chip_only")[0] == "chip"
    assert not pattern.search("chips and microchip")
