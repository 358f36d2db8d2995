"""An invalid target file ends the command before anything starts: one message, code 2."""

from pathlib import Path

import pytest

from backends.registry import REGISTRY
from testing.cli.command import evolve_here

NPU = (REGISTRY.folder / "targets" / "npu.toml").read_text(encoding="utf-8")
H200 = (REGISTRY.folder / "targets" / "h200.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "text, old, new, what",
    [
        (NPU, 'name = "npu"', 'name = "../npu"', "field `name` is '../npu'"),
        (NPU, "clock_hz = 1.35e9", "clock_hz = nan", "field `sim.clock_hz` is nan"),
        (NPU, "row_cycles = 1 ", "row_cycle = 1 ", "field `sim.dma.row_cycle` is not known"),
        (NPU, "hop_cycles = 2", "", "field `sim.mesh.hop_cycles` is missing"),
        (NPU, "launch_us = 0.52", "launch_us = -1", "field `overheads.launch_us` is -1"),
        (NPU, "grid = 64", "grid = 63", "field `sim.rows` makes levels.grid 64, where it is 63"),
        (H200, "warp = 32                         # threads", "warp = 64 #", "`levels.warp` is 64"),
        (H200, "sector_bytes = 32", "sector_bytes = 0", "field `gpu.sector_bytes` is 0"),
    ],
)
def test_a_wrong_field_is_said_before_anything_starts(tmp_path, text, old, new, what):
    assert old in text
    (tmp_path / "chip.toml").write_text(text.replace(old, new, 1))
    (tmp_path / "broken.py").write_text("this is not read")
    done = evolve_here(tmp_path, "--target=chip.toml", "--problem=broken.py", "--store=s.db")
    assert done.returncode == 2 and not done.stdout
    assert what in done.stderr and "chip.toml: " in done.stderr and "hint: " in done.stderr
    assert "Traceback" not in done.stderr and "broken.py" not in done.stderr
    assert sorted(p.name for p in Path(tmp_path).iterdir()) == ["broken.py", "chip.toml"]


def test_a_good_file_of_ones_own_is_searched_for(tmp_path):
    (tmp_path / "chip.toml").write_text(NPU.replace('name = "npu"', 'name = "my_chip"'))
    done = evolve_here(
        tmp_path,
        "--target=chip.toml",
        "--kernel=softmax",
        "--shape=M=8,K=16",
        "--evaluations=1",
        "--no-store",
    )
    assert done.returncode == 0, done.stderr
