"""Tests kernels that are built here for a race on another machine: the files, their digests, and
what is rejected."""

import hashlib
import json
import pickle
import shutil

import pytest

from backends.registry import backend, target
from benchmarks import languages, prebuilt
from benchmarks.built import INDEX, read_built
from benchmarks.languages import Race, measured
from ir.errors import KernelError

RACE = Race("h100", "h200")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("built") / "all"
    words = ["--target=h100", "--schedules=h200", "--kernels=map_id,cumsum", f"--out={made}"]
    assert prebuilt.main([*words, "--backends=cuda"]) == 0
    return made


def job(built, folder, kernel="map_id"):
    race = Race("h100", "h200", built)
    return languages.job(kernel, "cuda", race, folder, "build")


def test_a_folder_says_what_is_in_it(folder):
    table = json.loads((folder / INDEX).read_text())
    assert (table["target"], table["schedules"]) == ("h100", "h200")
    assert table["toolchains"]["cuda"].startswith("nvrtc ")
    row = table["kernels"]["map_id-cuda"]
    for name, digest in row["files"].items():
        data = (folder / "map_id-cuda" / name).read_bytes()
        assert hashlib.sha256(data).hexdigest() == digest
    assert row["sha256"] in row["files"].values()


def test_a_race_takes_the_very_files(folder, tmp_path):
    built = read_built(folder, "h100")
    row = job(built, tmp_path)
    assert row["sha256"] == built.kernels["map_id-cuda"]["sha256"] and row["registers"] > 0
    kept = pickle.loads((tmp_path / "map_id-cuda.pickle").read_bytes())
    assert kept.file.parent == folder / "map_id-cuda"
    # They run at all check sizes and the tuned one without another compilation.
    one = languages.lowered("map_id", "h100", "cuda", "h200")
    before = set(folder.rglob("*"))
    one.serving.complete(kept, one.nest, one.machine, [one.work.tune, *one.work.checks])
    assert set(folder.rglob("*")) == before


def test_a_target_with_the_same_code_takes_the_very_files_too(folder, tmp_path):
    built = read_built(folder, "h200")
    row = languages.job("map_id", "cuda", Race("h200", "h200", built), tmp_path, "build")
    assert row["sha256"] == built.kernels["map_id-cuda"]["sha256"]


def test_what_the_folder_lacks_is_built_here(folder, tmp_path):
    row = languages.job(
        "softmax", "cuda", Race("h100", "h200", read_built(folder, "h100")), tmp_path, "build"
    )
    assert len(row["sha256"]) == 64 and (tmp_path / "softmax-cuda").is_dir()


def test_another_file_another_source_and_another_target_are_refused(folder, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    image = next((copy / "map_id-cuda").glob("*.cubin"))
    image.write_bytes(image.read_bytes()[:-1])
    with pytest.raises(KernelError, match="was built"):
        job(read_built(copy, "h100"), tmp_path)
    index = json.loads((copy / INDEX).read_text())
    source = copy / "cumsum-cuda" / "kernel.cu"
    source.write_text(source.read_text() + "\n")
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    index["kernels"]["cumsum-cuda"]["files"]["kernel.cu"] = digest
    (copy / INDEX).write_text(json.dumps(index))
    with pytest.raises(KernelError, match="another source"):
        job(read_built(copy, "h100"), tmp_path, "cumsum")
    with pytest.raises(KernelError, match="for `h100`"):
        read_built(folder, "a100")
    with pytest.raises(KernelError, match="no folder of built kernels"):
        read_built(tmp_path, "h100")


def test_a_backend_whose_kernels_are_built_needs_the_gpu_alone(folder, monkeypatch):
    served = type(backend("cuda"))
    monkeypatch.setattr(served, "present", lambda *_: "")
    monkeypatch.setattr(served, "available", lambda *_: {"time_kind": None, "why": "no compiler"})
    built = read_built(folder, "h100")
    found, _ = measured(target("h100"), built)
    assert found == ["cuda"]
    found, lacking = measured(target("h100"))
    assert found == [] and ("cuda", "no compiler") in lacking


def test_a_backend_that_carries_nothing_is_refused(tmp_path):
    words = ["--target=h100", "--kernels=map_id", f"--out={tmp_path / 'new'}"]
    with pytest.raises(KernelError, match="`triton` builds nothing to carry"):
        prebuilt.main([*words, "--backends=triton"])
    with pytest.raises(KernelError, match="already exists"):
        prebuilt.main([*words[:2], f"--out={tmp_path}"])


def test_a_kernel_that_cannot_be_built_is_a_failure(tmp_path):
    folder = tmp_path / "new"
    words = ["--target=h100", "--schedules=npu_small", "--backends=cuda", f"--out={folder}"]
    assert prebuilt.main([*words, "--kernels=map_id"]) == 1
    with pytest.raises(KernelError, match="map_id-cuda"):
        job(read_built(folder, "h100"), tmp_path)
