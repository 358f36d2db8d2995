"""Invalid output files are refused early, and files are written atomically."""

import os

import pytest

from ir.errors import KernelError
from search.cli.files import require_writable, write


def test_a_file_is_written_whole_and_replaces_an_old_one(tmp_path):
    file = tmp_path / "page.html"
    for data in (b"one", b"two"):
        require_writable("--report", file)
        write("--report", file, data)
        assert file.read_bytes() == data
    assert os.listdir(tmp_path) == ["page.html"]


def test_a_failed_write_leaves_the_old_file_and_nothing_beside_it(tmp_path, monkeypatch):
    file = tmp_path / "page.html"
    file.write_bytes(b"old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(KernelError, match="No space left"):
        write("--report", file, b"new")
    assert file.read_bytes() == b"old" and os.listdir(tmp_path) == ["page.html"]


def test_a_folder_and_a_missing_folder_are_refused(tmp_path):
    for file in (tmp_path, tmp_path / "no" / "page.html"):
        with pytest.raises(KernelError) as fault:
            require_writable("--report", file)
        assert fault.value.where == "--report" and fault.value.hint
