"""Emitted sources also compile with ROCm's HIP headers, so they are standard HIP."""

from __future__ import annotations

import pytest

from backends.hip import build as building
from backends.hip import clang
from backends.hip.testing.samples import CASES, emitted
from testing.slow import in_turn


@pytest.mark.parametrize(
    ("name", "chip"), in_turn(CASES, [("mi300", "gfx942"), ("mi350", "gfx950")])
)
def test_a_source_compiles_with_rocms_headers(name, chip, tmp_path):
    target, arch = chip
    file, to = tmp_path / "kernel.hip", tmp_path / "kernel.s"
    file.write_text(emitted(name, target), encoding="utf-8")
    library = clang.device_library()
    headers = [library.parents[1] / "include", clang.DEVICE, *clang.INCLUDE]
    linked = [
        word
        for part in (library, library.with_name("ockl.bc"))
        for word in ("-Xclang", "-mlink-builtin-bitcode", "-Xclang", str(part))
    ]
    clang.run(
        *("clang", *clang.DEVICE_FLAGS, f"--offload-arch={arch}", "-D__HIP_PLATFORM_AMD__"),
        *("-D__HIPCC_RTC__", "-include", str(clang.HERE / "testing" / "rocm.h")),
        *(f"-I{folder}" for folder in headers),
        *(*linked, str(file), "-o", str(to)),
    )
    found = building.kernels(to.read_text(encoding="utf-8"))
    assert found and all(building.code(text).spills == 0 for text in found.values())
