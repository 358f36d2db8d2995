"""The table `[cuda]`: what a target file says for this backend."""

from dataclasses import replace
from pathlib import Path

import pytest

from backends.cuda.table import check
from backends.cuda.testing.emulation import machine_of
from backends.registry import backend_for, target
from ir.errors import KernelError


def changed(**table):
    machine = machine_of("h200")
    return replace(machine, details={**machine.details, "cuda": table})


def test_a_target_of_nvidia_is_taken():
    check(machine_of("h200"))
    check(machine_of("a100"))


@pytest.mark.parametrize("arch", [75, "90", "75a", "a", 90.0, None, True])
def test_an_architecture_is_a_number_that_kernel_h_serves(arch):
    with pytest.raises(KernelError, match="field `cuda.arch`"):
        check(changed(arch=arch))


def test_other_fields_and_warps_are_refused():
    with pytest.raises(KernelError, match="field `cuda.chip`"):
        check(changed(arch=90, chip="x"))
    with pytest.raises(KernelError, match="field `cuda.arch` is missing"):
        check(changed())
    other = replace(machine_of("h200"), levels={**machine_of("h200").levels, "warp": 64})
    with pytest.raises(KernelError, match="field `levels.warp` is 64"):
        check(other)
    bare = machine_of("h200")
    with pytest.raises(KernelError, match="field `gpu` is missing"):
        check(replace(bare, details={"cuda": {"arch": 90}}))


def test_a_users_file_may_list_this_backend(tmp_path):
    file = tmp_path / "chip.toml"
    text = (Path(__file__).parents[1] / "targets" / "a100.toml").read_text(encoding="utf-8")
    text = text.replace('backends = ["triton", "cuda"]', 'backends = ["cuda"]').replace(
        '"a100"', '"chip"'
    )
    text = text.partition("[triton]")[0]
    file.write_text(text + "\n[cuda]\narch = 80\n", encoding="utf-8")
    machine = target(str(file))
    assert backend_for(machine).manifest.name == machine.rendering.backend == "cuda"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(KernelError, match="`cuda` is missing"):
        target(str(file))
