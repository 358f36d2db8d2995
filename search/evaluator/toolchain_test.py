"""The digest of a bench changes with everything that outcomes depend on, and with nothing else."""

from dataclasses import replace

import pytest

from ir.machine import Machine, Space, Unit
from machines.tiles.tiles import TILES
from search.evaluator import toolchain
from search.evaluator.stages import Bench

CHIP = Machine(
    name="chip",
    title="A chip",
    backends=("tongue",),
    levels={"grid": 4},
    spaces={"global": Space(1 << 30, 1e9), "local": Space(1 << 16)},
    units={"vector": Unit({"f32": 1e9})},
    model=TILES,
)
BENCH = Bench("def f", CHIP, object, {"M": 8, "K": 4}, ({"M": 1, "K": 1},))
HERE = {"toolchain": "tongue 1", "device": "a chip", "clocks": "1 GHz"}


@pytest.fixture(autouse=True)
def tree(tmp_path, monkeypatch):
    """Replaces the packages, because other files may change while tests run."""
    for name in ("a.py", "a_test.py", "sim/device.cc", "targets/chip.toml", "__pycache__/a.pyc"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    monkeypatch.setattr(toolchain, "folders", lambda: [tmp_path])
    return tmp_path


@pytest.mark.parametrize(
    "change",
    [
        {"spec": "def g"},
        {"sizes": {"M": 8, "K": 5}},
        {"checks": ()},
        {"secret": "other"},
        {"machine": replace(CHIP, levels={"grid": 8})},
    ],
)
def test_another_bench_has_another_digest(change):
    other = replace(BENCH, **change)
    assert toolchain.bench_digest(other, HERE) != toolchain.bench_digest(BENCH, HERE)


def test_the_order_of_sizes_does_not_matter():
    transposed = replace(BENCH, sizes={"K": 4, "M": 8})
    assert toolchain.bench_digest(transposed, HERE) == toolchain.bench_digest(BENCH, HERE)


@pytest.mark.parametrize("name, counts", [("toolchain", True), ("device", True), ("clocks", False)])
def test_what_the_backend_says_of_itself_counts_but_for_what_varies(name, counts):
    other = {**HERE, name: "another"}
    same = toolchain.bench_digest(BENCH, other) == toolchain.bench_digest(BENCH, HERE)
    assert same != counts


@pytest.mark.parametrize("name", ["a.py", "sim/device.cc"])
def test_a_changed_source_changes_the_digest(tree, name):
    before = toolchain.toolchain_digest()
    (tree / name).write_text("changed")
    assert toolchain.toolchain_digest() != before


@pytest.mark.parametrize("name", ["a_test.py", "targets/chip.toml", "__pycache__/a.pyc"])
def test_tests_targets_and_caches_do_not_count(tree, name):
    before = toolchain.toolchain_digest()
    (tree / name).write_text("changed")
    assert toolchain.toolchain_digest() == before


def test_a_file_that_moves_changes_the_digest(tree):
    before = toolchain.toolchain_digest()
    (tree / "a.py").rename(tree / "sim" / "a.py")
    assert toolchain.toolchain_digest() != before
