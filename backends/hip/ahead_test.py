"""The shared parts of the emulator's kernels are compiled once, and again if they cannot be
cached."""

import pytest

from backends.hip.ahead import ahead_of_kernels
from backends.hip.emulator import library
from backends.hip.testing.samples import backend, machine_of, nest_of


@pytest.fixture
def found(monkeypatch):
    """The result with a cache folder, as in a new process."""

    def find(folder):
        monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
        ahead_of_kernels.cache_clear()
        return ahead_of_kernels()

    yield find
    ahead_of_kernels.cache_clear()


def test_it_is_compiled_once(found, tmp_path):
    first = found(tmp_path)
    made = first.code.stat().st_mtime_ns
    again = found(tmp_path)
    assert again == first and first.folder.is_relative_to(tmp_path)
    assert again.code.stat().st_mtime_ns == made


def test_kernels_compile_where_nothing_can_be_kept(found, tmp_path):
    no_folder = tmp_path / "file"
    no_folder.write_text("")
    ahead = found(no_folder)
    assert not ahead.folder.is_relative_to(no_folder) and ahead.code.exists()
    source = tmp_path / "kernel.hip"
    source.write_text(backend().emit(nest_of("rows"), machine_of("mi300")), encoding="utf-8")
    assert library(source, (), {}).exists()
