"""Tests that the command shows a kernel at every level, and reports errors in its arguments."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from backends.registry import target
from ir.errors import KernelError
from ir.parse.parse import parse_spec, parse_workload
from tools import show
from tools.kernels import LIBRARY, named
from tools.show import LEVELS, levels, lowered, shown

NPU = target("npu")


def run(capsys, *arguments):
    code = show.main([f"--{a}" for a in arguments])
    return code, *capsys.readouterr()


def test_all_levels_stand_below_headings_in_the_order_of_lowering(capsys):
    code, out, _ = run(capsys, "kernel=softmax", "target=npu")
    assert code == 0
    heads = [line.split()[1] for line in out.splitlines() if line.startswith("=== ")]
    assert heads == [f"{name}:" for name in LEVELS]
    for part in ("schedule(softmax)", "\nlaunch softmax_0(M, K)\n", '#include "device.h"'):
        assert part in out


@pytest.mark.parametrize("level", LEVELS)
def test_one_level_is_the_text_of_that_level_alone(level, capsys):
    one = lowered(named("rmsnorm_matmul"), NPU)
    assert run(capsys, "kernel=rmsnorm_matmul", "target=npu", f"level={level}")[1] == shown(
        one, level
    )


def test_spec_and_variant_read_back():
    tiles = "".join(f"tile({index}, size=16)\n" for index in "mnk")
    schedule = f"schedule(rmsnorm_matmul)\nhoist(r, into=y)\n{tiles}"
    one = lowered(named("rmsnorm_matmul"), NPU, schedule)
    assert parse_workload(shown(one, "spec")) == named("rmsnorm_matmul")
    assert parse_spec(shown(one, "variant")) == one.nest.variant != one.workload.spec


def test_files_are_read_from_where_the_user_stands(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("BUILD_WORKING_DIRECTORY", str(tmp_path))
    text = (LIBRARY / "softmax.kir").read_text(encoding="utf-8")
    (tmp_path / "mine.kir").write_text(text, encoding="utf-8")
    (tmp_path / "mine.sched").write_text("schedule(softmax)\ntile(m, size=2)\n", encoding="utf-8")
    asked = ("kernel=mine.kir", "target=npu", "schedule=mine.sched", "shape=M=6,K=40")
    code, out, _ = run(capsys, *asked, "level=nest")
    assert code == 0
    assert out.startswith("nest of softmax for npu at M=6, K=40\n") and " by 2" in out


def test_a_backend_shows_levels_of_its_own_before_the_source():
    one = lowered(named("softmax"), NPU)
    backend = SimpleNamespace(
        manifest=one.backend.manifest,
        emit=one.backend.emit,
        levels=lambda nest, machine: {"tile": "tiles\n", "thread": "threads\n"},
    )
    more = show.Lowered(one.workload, one.machine, backend, one.nest)
    assert list(levels(more)) == ["spec", "schedule", "variant", "nest", "tile", "thread", "source"]
    assert shown(more, "tile") == "tiles\n" and "=== thread: on the way to C++" in shown(more)
    with pytest.raises(KernelError, match="no level `tile`"):
        shown(one, "tile")


def test_a_gpu_kernel_shows_what_each_thread_block_does(capsys):
    code, out, _ = run(capsys, "kernel=softmax", "target=h200", "level=tile")
    assert code == 0 and out.startswith("program softmax\n\nlaunch softmax_0(x, y): ")
    assert "\n    for each tile:\n" in out and "\n        x = load x_pointer[" in out
    assert list(levels(lowered(named("softmax"), target("h200"))))[-2:] == ["tile", "source"]


@pytest.mark.parametrize(
    "arguments, said",
    [
        (("kernel=sofmax", "target=npu"), "there is no kernel `sofmax`"),
        (("kernel=softmax", "target=npv"), "there is no target `npv`"),
        (("kernel=softmax", "target=npu", "level=nets"), "there is no level `nets`"),
        (("kernel=none/such.kir", "target=npu"), "cannot be read"),
        (("kernel=softmax", "target=npu", "schedule=none.sched"), "cannot be read"),
        (("kernel=softmax", "target=npu", "shape=Q=2"), "has no size `Q`"),
    ],
)
def test_wrong_use_says_what_is_allowed(arguments, said, capsys):
    code, out, error = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert error.startswith("show: ") and said in error and "hint: " in error


def test_a_schedule_that_does_not_lower_names_its_file(tmp_path, capsys):
    file = tmp_path / "bad.sched"
    file.write_text("schedule(softmax)\ntile(q, size=2)\n", encoding="utf-8")
    code, _, error = run(capsys, "kernel=softmax", "target=npu", f"schedule={file}")
    assert code == 2 and str(file) in error and "line 2" in error
