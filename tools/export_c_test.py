"""Tests that the command writes C that compiles, with the cubin that it names, or a HIP program,
and that it rejects what it cannot export."""

from __future__ import annotations

import hashlib
import re
import subprocess
from pathlib import Path

import pytest
import triton

from tools import export_c

INCLUDE = Path(triton.__file__).parent / "backends" / "nvidia" / "include"


def run(folder, monkeypatch, capsys, *arguments):
    monkeypatch.setenv("BUILD_WORKING_DIRECTORY", str(folder))
    code = export_c.main([*(f"--{a}" for a in arguments), "--out=made"])
    return code, *capsys.readouterr()


@pytest.mark.parametrize("backend", ["cuda", "cutedsl"])
def test_a_kernel_is_exported_at_sizes(backend, tmp_path, monkeypatch, capsys):
    asked = ("kernel=softmax", "target=h100", f"backend={backend}", "shape=M=24,K=100")
    code, out, error = run(tmp_path, monkeypatch, capsys, *asked)
    assert code == 0, error
    made = tmp_path / "made"
    assert out.split() == [str(made / "softmax.h"), str(made / "softmax.c")]
    text = (made / "softmax.c").read_text()
    image = re.search(r"image\[\] = \{(.*?)\}", text, re.DOTALL)[1]
    data = bytes(int(n) for n in image.split(",") if n.strip())
    head = (made / "softmax.h").read_text()
    assert f"sha256 {hashlib.sha256(data).hexdigest()}" in head and "sm_90a" in head
    assert "M = 24, K = 100" in head and "x_ptr: f32[24, 100], input" in head
    command = ["cc", "-c", "-Wall", "-Werror", f"-isystem{INCLUDE}", "softmax.c"]
    done = subprocess.run(command, cwd=made, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_where_kernels_are_sources_the_program_is_one(tmp_path, monkeypatch, capsys):
    asked = ("kernel=softmax", "target=mi300", "backend=hip", "shape=M=24,K=100")
    code, out, error = run(tmp_path, monkeypatch, capsys, *asked)
    assert code == 0, error
    made = tmp_path / "made"
    assert out.split()[:2] == [str(made / "softmax.h"), str(made / "softmax.hip")]
    text = (made / "softmax.hip").read_text()
    assert "hipLaunchKernelGGL(softmax_0, dim3(" in text and "(y_ptr), 100);" in text
    written = {Path(name).name for name in out.split()}
    assert set(re.findall(r'#include "(.*?)"', text)) <= written


def test_another_kernel_of_the_name_is_not_overwritten_unless_it_is_asked_for(
    tmp_path, monkeypatch, capsys
):
    asked = ("kernel=softmax", "target=mi300", "backend=hip", "shape=M=24,K=100")
    head = tmp_path / "made" / "softmax.h"
    head.parent.mkdir()
    head.write_text("of another language")
    code, out, error = run(tmp_path, monkeypatch, capsys, *asked)
    assert (code, out) == (2, "") and "--out: " in error and "--overwrite" in error
    assert list(head.parent.iterdir()) == [head] and head.read_text() == "of another language"
    assert run(tmp_path, monkeypatch, capsys, *asked, "overwrite")[0] == 0
    assert "softmax_run" in head.read_text()
    # A second export of the same files is accepted.
    assert run(tmp_path, monkeypatch, capsys, *asked)[0] == 0


def test_a_file_in_place_of_the_folder_is_told(tmp_path, monkeypatch, capsys):
    (tmp_path / "made").write_text("")
    code, out, error = run(tmp_path, monkeypatch, capsys, "kernel=softmax", "target=mi300")
    assert (code, out) == (2, "") and "`" in error and "is a file" in error


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (("kernel=softmax", "target=npu"), "exports no C"),
        (("kernel=softmax", "target=npu"), "allowed: none of target `npu`"),
        (("kernel=softmax", "target=h100"), "allowed: cuda, cutedsl"),
        (("kernel=softmax", "target=h100", "backend=cuda", "shape=Q=3"), "no size `Q`"),
        (("kernel=soft", "target=h100", "backend=cuda"), "soft"),
    ],
)
def test_what_cannot_be_exported_is_refused(asked, told, tmp_path, monkeypatch, capsys):
    code, out, error = run(tmp_path, monkeypatch, capsys, *asked)
    assert code == 2 and not out and told in error and not (tmp_path / "made").exists()
