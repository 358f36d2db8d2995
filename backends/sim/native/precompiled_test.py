"""A header compiled ahead: kept once, used by the compiler, done without where it cannot be."""

import subprocess
from pathlib import Path

import pytest

from backends.sim.native import precompiled
from backends.sim.native.load import device_include

FLAGS = ("-std=c++20", "-O0", "-shared", "-fPIC", "-Wall")


@pytest.fixture(autouse=True)
def _afresh(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    precompiled.kernel_include.cache_clear()
    yield
    precompiled.kernel_include.cache_clear()


def test_a_kernel_is_built_with_the_header_that_was_compiled(tmp_path) -> None:
    folder = precompiled.kernel_include("g++", FLAGS)
    assert (folder / "device.h").read_bytes() == (device_include() / "device.h").read_bytes()
    (tmp_path / "k.cc").write_text('#include "device.h"\nint main() {}\n')
    command = ["g++", *FLAGS, "-H", f"-I{folder}", "-c", "k.cc", "-o", "k.o"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert f"! {folder}/device.h.gch" in done.stderr  # gcc's mark of one that it used


def test_it_is_compiled_once() -> None:
    folder = precompiled.kernel_include("g++", FLAGS)
    made = (folder / "device.h.gch").stat().st_mtime_ns
    precompiled.kernel_include.cache_clear()
    assert precompiled.kernel_include("g++", FLAGS) == folder
    assert (folder / "device.h.gch").stat().st_mtime_ns == made
    assert precompiled.kernel_include("g++", (*FLAGS, "-O1")) != folder


def test_where_it_cannot_be_kept_kernels_take_the_header_itself(monkeypatch, tmp_path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert precompiled.kernel_include("g++", FLAGS) == device_include()


def test_a_compiler_that_refuses_or_is_missing_leaves_nothing(tmp_path) -> None:
    assert precompiled.kernel_include("no-such-compiler", FLAGS) == device_include()
    assert precompiled.kernel_include("g++", ("-no-such-flag",)) == device_include()
    assert not list(Path(tmp_path).rglob("*.gch"))
