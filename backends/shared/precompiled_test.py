"""A precompiled header is cached and used by the compiler, and is optional."""

import subprocess
from pathlib import Path

import pytest

from backends.shared.precompiled import precompiled

HEADER = "k.h"
FLAGS = ("-std=c++20", "-O0", "-shared", "-fPIC", "-Wall")


@pytest.fixture
def headers(tmp_path) -> tuple[Path, ...]:
    """Two folders; the header of the first includes that of the second."""
    folders = (tmp_path / "one", tmp_path / "other")
    for folder, name, text in zip(
        folders, (HEADER, "more.h"), ('#include "more.h"\n', "inline int f() { return 3; }\n")
    ):
        folder.mkdir()
        (folder / name).write_text(text)
    return folders


@pytest.fixture(autouse=True)
def _afresh(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    precompiled.cache_clear()
    yield
    precompiled.cache_clear()


def test_a_kernel_is_built_with_the_header_that_was_compiled(headers, tmp_path) -> None:
    (folder,) = precompiled("g++", FLAGS, headers, HEADER)
    (tmp_path / "k.cc").write_text(f'#include "{HEADER}"\nint main() {{ return f(); }}\n')
    command = ["g++", *FLAGS, "-H", f"-I{folder}", "-c", "k.cc", "-o", "k.o"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert f"! {folder}/{HEADER}.gch" in done.stderr  # gcc's mark for one that it used


def test_it_is_compiled_once_for_what_it_says(headers) -> None:
    (folder,) = precompiled("g++", FLAGS, headers, HEADER)
    made = (folder / f"{HEADER}.gch").stat().st_mtime_ns
    precompiled.cache_clear()
    assert precompiled("g++", FLAGS, headers, HEADER) == (folder,)
    assert (folder / f"{HEADER}.gch").stat().st_mtime_ns == made
    assert precompiled("g++", (*FLAGS, "-O1"), headers, HEADER) != (folder,)
    (headers[1] / "more.h").write_text("inline int f() { return 4; }\n")
    precompiled.cache_clear()
    assert precompiled("g++", FLAGS, headers, HEADER) != (folder,)


def test_where_it_cannot_be_kept_kernels_take_the_headers(headers, monkeypatch, tmp_path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert precompiled("g++", FLAGS, headers, HEADER) == headers


def test_a_compiler_that_refuses_or_is_missing_leaves_nothing(headers, tmp_path) -> None:
    assert precompiled("no-such-compiler", FLAGS, headers, HEADER) == headers
    assert precompiled("g++", ("-no-such-flag",), headers, HEADER) == headers
    assert not list(Path(tmp_path).rglob("*.gch"))
