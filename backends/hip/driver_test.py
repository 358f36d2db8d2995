"""Launches through a driver that records its calls, with torch's CPU in place of the GPU."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

from backends.backend import BackendError
from backends.gpu.device import timing
from backends.gpu.device.fake import stand_in
from backends.gpu.device.running import MOST_SETS
from backends.gpu.source.launches import Call
from backends.hip import backend as hip
from backends.hip import driver
from backends.hip.testing.samples import backend, emitted, machine_of, nest_of
from ir.reference.inputs import random_inputs

MI300 = machine_of("mi300")
SIZES = dict(M=5, K=40)


class FakeDriver:
    """The used functions of libamdhip64; a launch doubles its inputs."""

    def __init__(self, failing: str = ""):
        self.failing = failing
        self.seen: list[tuple] = []

    def _note(self, name, *values):
        self.seen.append((name, *values))
        return 700 if name == self.failing else 0

    def hipModuleLoadData(self, handle, image):
        return self._note("load", image[:4])

    def hipModuleGetFunction(self, found, handle, name):
        return self._note("function", name.decode())

    def hipGetErrorString(self, failed):
        return b"an illegal memory access"

    def hipModuleLaunchKernel(self, function, *rest):
        (grid, _, _, block, _, _, shared), (stream, arguments, extra) = rest[:7], rest[7:]
        x, y = (ctypes.c_void_p.from_address(arguments[n]).value for n in range(2))
        numbers = [ctypes.c_int.from_address(arguments[n]).value for n in range(2, len(arguments))]
        assert extra is None
        self._note("launch", grid.value, block.value, shared.value, stream.value, numbers)
        if self.failing == "launch":
            return 700
        count = SIZES["M"] * SIZES["K"]
        given, made = ((ctypes.c_float * count).from_address(a) for a in (x, y))
        for n in range(count):
            made[n] = 2 * given[n]
        return 0


@pytest.fixture
def fake(monkeypatch):
    """Installs such a driver."""

    def make(failing=""):
        found = FakeDriver(failing)
        monkeypatch.setattr(driver, "driver", lambda: found)
        return found

    return make


@pytest.fixture
def on_cpu(monkeypatch):
    """Torch's CPU in place of the target's GPU."""

    stand_in(monkeypatch, hip)


def given(folder: Path):
    nest = nest_of("rows")
    built = backend().build(emitted("rows"), nest, MI300, folder)
    return built, nest, MI300, SIZES, random_inputs(nest.spec, SIZES, np.random.default_rng(0))


def test_a_run_launches_the_code_for_its_sizes(fake, on_cpu, tmp_path):
    seen = fake()
    arguments = given(tmp_path)
    found = backend().run(*arguments)
    np.testing.assert_array_equal(found["y"], 2 * arguments[-1]["x"])
    assert [s[0] for s in seen.seen] == ["load", "function", "launch"]
    assert seen.seen[0][1] == b"\x7fELF" and seen.seen[1][1] == "row_softmax_0"
    _, grid, block, _, stream, numbers = seen.seen[2]
    assert (grid, block, stream, numbers) == (2, 256, 77, [5, 40])


def test_a_time_is_of_all_launches(fake, on_cpu, tmp_path, monkeypatch):
    seen = fake()

    def measured(call, sets, gpu, seconds, clear, most):
        for tensors in sets:
            clear(tensors)
            call(tensors)
        return timing.Times(12.0, 11.0, 11.5, 13.0, 20, 5.0, 20.0)

    monkeypatch.setattr(timing, "measure", measured)
    timed = backend().time(*given(tmp_path))
    assert (timed.us, timed.kind) == (12.0, "measured")
    # A call loads the code. Each set is timed, and all except the first are compared with another
    # call.
    assert [s[0] for s in seen.seen].count("launch") == 1 + MOST_SETS + (MOST_SETS - 1)
    trace = tmp_path / "trace.json"
    backend().profile(*given(tmp_path), trace)
    assert '"row_softmax_0"' in trace.read_text()


@pytest.mark.parametrize("failing", ["load", "function", "launch"])
def test_what_the_driver_refuses_is_a_fault_of_the_kernel(fake, on_cpu, tmp_path, failing):
    fake(failing)
    with pytest.raises(BackendError, match="an illegal memory access") as seen:
        backend().run(*given(tmp_path))
    assert seen.value.stage == "check"


def test_an_empty_grid_is_not_launched(fake, tmp_path):
    seen = fake()
    image = tmp_path / "image"
    image.write_bytes(b"code")
    driver.launcher(image, [Call("k", 0, 64, 0, (), ())], lambda: 0)()
    assert "launch" not in [s[0] for s in seen.seen]


def test_without_a_gpu_an_edited_source_is_emulated(tmp_path):
    built, *rest = given(tmp_path)
    np.testing.assert_allclose(backend().run(built, *rest)["y"].sum(1), 1, rtol=1e-5)
    source = emitted("rows")
    built.file.write_text(source.replace("y[k_i] = e[k_i] / s", "y[k_i] = e[k_i] / s * 2.0f"))
    np.testing.assert_allclose(backend().run(built, *rest)["y"].sum(1), 2, rtol=1e-5)


def test_without_a_gpu_the_time_is_modelled(tmp_path):
    timed = backend().time(*given(tmp_path))
    assert timed.kind == "modelled" and timed.us > 0
    told = backend().available(MI300)
    assert (told["correct_by"], told["time_kind"]) == ("emulator", "modelled")
    assert told["toolchain"].startswith("clang 21") and told["why"]
