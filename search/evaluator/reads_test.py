"""A sandboxed process can read the toolchain, the project's packages and its folder, and nothing
else."""

import os
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

from search.evaluator import reads
from search.evaluator.sandbox import Limits
from search.evaluator.testing.inside import inside, need

TREE = Path(reads.__file__).resolve().parents[2]


@pytest.mark.parametrize("devices", [(), ("/dev/zero",)])
def test_it_may_not_read_files_of_others(folder, layers, devices):
    need(layers, "reads")
    file = folder.parent / "theirs.txt"
    (folder / "link").symlink_to(file)
    limits = Limits(devices=devices)
    for act in (
        file.read_text,
        lambda: os.listdir(file.parent),
        (folder / "link").read_text,
        lambda: os.listdir(Path.home()),
        lambda: os.listdir("/"),
        lambda: subprocess.run([file]),
    ):
        said = inside(folder, act, limits)
        assert said in ("PermissionError", "FileNotFoundError"), said


def test_it_may_not_read_settings_and_devices_of_the_machine(folder, layers):
    need(layers, "reads")
    for place in ("/etc/passwd", "/etc/hostname", "/dev/mem", "/dev/kmsg"):
        if Path(place).exists():
            assert inside(folder, lambda place=place: Path(place).read_bytes().decode()) == (
                "PermissionError"
            )


def test_it_reads_the_toolchain_and_its_folder(folder, layers):
    need(layers, "reads")

    def act():
        (folder / "own").write_text("own")
        read = [(folder / "own").read_text(), Path(numpy.__file__).read_text()[:0]]
        read.append(Path(TREE, "ir", "spec.py").read_text()[:0])
        return [*read, subprocess.run([sys.executable, "-c", "import json"]).returncode]

    assert inside(folder, act) == ["own", "", "", 0]


def test_of_the_tree_it_reads_packages_alone(folder, layers):
    need(layers, "reads")
    assert inside(folder, lambda: os.listdir(TREE)) == "PermissionError"
    if (TREE / "README.md").exists():
        assert inside(folder, (TREE / "README.md").read_text) == "PermissionError"


def test_a_toolchain_is_never_the_home_nor_the_tree():
    home = Path.home().resolve()
    for place in reads.toolchain():
        assert not home.is_relative_to(place) and not TREE.is_relative_to(place)


def test_rights_that_a_kernel_lacks_are_told(folder, monkeypatch):
    from search.evaluator import sandbox

    def lacking():
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(reads, "version", lacking)
    assert sandbox.applied(folder, Limits())["reads"] == "no: [Errno 38] Function not implemented"
