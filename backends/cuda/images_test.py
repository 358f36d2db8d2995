"""A cubin is one file wherever it runs: with its digest, and without the compiler once it was built."""

from __future__ import annotations

import hashlib
import json

import pytest

from backends.backend import BackendError
from backends.cuda import nvrtc
from backends.cuda.testing.emulation import machine_of
from backends.cuda.testing.samples import backend, emitted, nest_of

H200 = machine_of("h200")
SIZES = ({"M": 8, "K": 1000}, {"M": 12, "K": 1001}, {"M": 16, "K": 1000})


@pytest.fixture
def built(tmp_path):
    nest = nest_of("rows")
    return backend().build(emitted("rows"), nest, H200, tmp_path), nest


def test_a_build_has_the_digest_of_its_code(built, tmp_path):
    (image,) = tmp_path.glob("*.cubin")
    made = json.loads(image.with_suffix(".json").read_text())
    assert built[0].sha256 == made["sha256"] == hashlib.sha256(image.read_bytes()).hexdigest()
    assert (made["toolchain"], made["arch"]) == (nvrtc.version(), "sm_90a")
    assert set(made["constants"]) == {"EVEN_M", "K_WIDTH", "EVEN_K", "ALIGNED_X"}


def test_what_was_completed_runs_without_the_compiler(built, tmp_path, monkeypatch):
    found = backend().complete(*built, H200, SIZES)
    assert len(found) == 2  # aligned, and not
    for name, digest in found.items():
        assert digest == hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()
    monkeypatch.setattr(nvrtc, "library", lambda: None)
    assert backend().complete(*built, H200, SIZES) == found
    with pytest.raises(BackendError, match="there is no NVRTC"):
        backend().complete(*built, H200, [{"M": 8, "K": 5000}])


def test_another_file_than_the_one_that_was_built_is_refused(built, tmp_path):
    (image,) = tmp_path.glob("*.cubin")
    image.write_bytes(image.read_bytes() + b"0")
    with pytest.raises(BackendError, match="was built"):
        backend().complete(*built, H200, [dict(nest_of("rows").sizes)])
