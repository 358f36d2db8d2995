"""Launching through a driver that notes what it is called with, on torch's CPU as the GPU."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest
import torch

from backends.backend import BackendError, Enqueues
from backends.cuda.backend import Cuda
from backends.cuda.testing.emulation import machine_of
from backends.cuda.testing.samples import backend, emitted, nest_of
from backends.gpu.cubins import driver
from backends.gpu.device import timing
from backends.gpu.device.fake import stand_in
from backends.gpu.device.running import MOST_SETS
from backends.gpu.source.launches import Call
from ir.autoschedule.autoschedule import autoschedule
from ir.lower.lower import lower
from ir.parse.parse import parse_spec
from ir.reference.inputs import random_inputs

H200 = machine_of("h200")
SIZES = dict(M=5, K=40)
FIXED = 24  # elements of the tensors of a kernel without sizes
DOUBLED = f"""def doubled(x: f32[{FIXED}]) -> f32[{FIXED}]:
    \"\"\"Double.\"\"\"
    y[m] = x[m] * 2.0
    return y
"""


class FakeDriver:
    """The functions of libcuda that are used; a launch doubles what it reads."""

    def __init__(self, failing: str = ""):
        self.failing = failing
        self.seen: list[tuple] = []

    def _note(self, name, *values):
        self.seen.append((name, *values))
        return 700 if name == self.failing else 0

    def cuModuleLoadData(self, handle, image):
        return self._note("load", image[:4])

    def cuModuleGetFunction(self, found, handle, name):
        return self._note("function", name.decode())

    def cuFuncSetAttribute(self, function, attribute, value):
        return self._note("attribute", attribute, value)

    def cuGetErrorString(self, failed, text):
        text._obj.value = b"an illegal memory access"
        return 0

    def cuLaunchKernelEx(self, config, function, arguments, extra):
        c = config._obj
        x, y = (ctypes.c_void_p.from_address(arguments[n]).value for n in range(2))
        numbers = [ctypes.c_int.from_address(arguments[n]).value for n in range(2, len(arguments))]
        self.seen.append(("launch", c.grid_x, c.grid_y, c.block_x, c.shared, c.stream, numbers))
        if self.failing == "launch":
            return 700
        count = numbers[0] * numbers[1] if numbers else FIXED
        given, made = ((ctypes.c_float * count).from_address(a) for a in (x, y))
        for n in range(count):
            made[n] = 2 * given[n]
        return 0


@pytest.fixture
def fake(monkeypatch):
    """Makes such a driver the driver."""

    def make(failing=""):
        found = FakeDriver(failing)
        monkeypatch.setattr(driver, "driver", lambda: found)
        return found

    return make


@pytest.fixture
def on_cpu(monkeypatch):
    """Torch's CPU as the target's GPU."""

    stand_in(monkeypatch, Cuda)


def given(folder: Path):
    nest = nest_of("rows")
    built = backend().build(emitted("rows"), nest, H200, folder)
    return built, nest, H200, SIZES, random_inputs(nest.spec, SIZES, np.random.default_rng(0))


def test_a_run_launches_the_code_for_its_sizes(fake, on_cpu, tmp_path):
    seen = fake()
    arguments = given(tmp_path)
    found = backend().run(*arguments)
    np.testing.assert_array_equal(found["y"], 2 * arguments[-1]["x"])
    assert [s[0] for s in seen.seen] == ["load", "function", "launch"]
    assert seen.seen[0][1] == b"\x7fELF" and seen.seen[1][1] == "row_softmax_0"
    _, grid, rows, block, shared, stream, numbers = seen.seen[2]
    assert (grid, rows, block, stream, numbers) == (2, 1, 128, 77, [5, 40])


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
    # A call loads the code; each set is timed, and all but the first are compared with another call.
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


def test_a_build_is_enqueued_on_tensors_at_any_sizes(fake, on_cpu, tmp_path):
    seen = fake()
    built, nest, machine, sizes, inputs = given(tmp_path)
    x, y = torch.from_numpy(inputs["x"]), torch.zeros(5, 40)
    assert isinstance(backend(), Enqueues)
    launch = backend().enqueued(built, nest, machine, sizes)
    for _ in range(2):  # loaded once
        launch(x, y)
    assert [s[0] for s in seen.seen] == ["load", "function", "launch", "launch"]
    torch.testing.assert_close(y, 2 * x)


def test_a_kernel_at_fixed_sizes_is_enqueued_without_numbers(fake, on_cpu, tmp_path):
    spec = parse_spec(DOUBLED)
    nest = lower(spec, autoschedule(spec, H200, {}), H200, {})
    built = backend().build(backend().emit(nest, H200), nest, H200, tmp_path)
    seen = fake()
    x, y = torch.arange(float(FIXED)), torch.zeros(FIXED)
    backend().enqueued(built, nest, H200, {})(x, y)
    assert seen.seen[-1][0] == "launch"
    torch.testing.assert_close(y, 2 * x)


def test_tensors_lie_on_the_gpu_where_it_is(on_cpu):
    assert backend().place(H200) == "cuda"


def test_elsewhere_they_lie_on_the_cpu():
    assert backend().place(H200) == "cpu"


def test_much_shared_memory_is_asked_for(fake, tmp_path):
    seen = fake()
    image = tmp_path / "image"
    image.write_bytes(b"code")
    launch = driver.launcher(image, [Call("k", 1, 32, 100_000, (), ())], lambda: 0)
    assert ("attribute", 8, 100_000) in seen.seen and callable(launch)


@pytest.mark.parametrize("blocks", [1, 4])
def test_blocks_of_a_cluster_are_launched_together(fake, tmp_path, blocks):
    image, found = tmp_path / "image", []
    image.write_bytes(b"code")
    stand = fake()

    def launched(config, function, arguments, extra):
        c = config._obj
        for n in range(c.attribute_count):
            found.append(driver.Attribute.from_address(c.attributes + 72 * n))
            assert (found[n].number, tuple(found[n].value[:3])) == (4, (blocks, 1, 1))
        return 0

    stand.cuLaunchKernelEx = launched
    call = Call("k", 8, 32, 0, (), (), cluster=blocks)
    driver.launcher(image, [call], lambda: 0)()
    assert len(found) == (blocks > 1) and ctypes.sizeof(driver.Attribute) == 72


def test_an_empty_grid_is_not_launched(fake, tmp_path):
    seen = fake()
    image = tmp_path / "image"
    image.write_bytes(b"code")
    driver.launcher(image, [Call("k", 0, 32, 0, (), ())], lambda: 0)()
    assert "launch" not in [s[0] for s in seen.seen]


def test_without_a_gpu_an_edited_source_is_not_run(tmp_path):
    built, *rest = given(tmp_path)
    np.testing.assert_allclose(backend().run(built, *rest)["y"].sum(1), 1, rtol=1e-5)
    built.file.write_text(emitted("rows") + "// edited\n")
    with pytest.raises(BackendError, match="runs on the target's GPU alone"):
        backend().run(built, *rest)


def test_without_a_gpu_the_time_is_modelled(tmp_path):
    timed = backend().time(*given(tmp_path))
    assert timed.kind == "modelled" and timed.us > 0
    told = backend().available(H200)
    assert (told["correct_by"], told["time_kind"]) == ("interpreter", "modelled")
    assert told["toolchain"].startswith("nvrtc 13.0") and told["why"]
