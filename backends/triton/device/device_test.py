"""Running and timing on a device, with torch's CPU in place of a GPU."""

import fcntl
import json
import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from triton.runtime.jit import JITFunction

from backends.backend import BackendError, Built
from backends.gpu.device import arena, gpu, nodes, nvml, running, timing
from backends.gpu.device.fake import Fake
from backends.triton.build.module import load
from backends.triton.device import device
from ir.reference.inputs import random_inputs

SIZES = dict(M=4, N=8)
PLAIN = "def launch(x, y):\n    y.copy_(2 * x + 1)\n"
ROOM = 1 << 30


class FakeGpu(Fake):
    uuid = ""


@pytest.fixture
def on_cpu(monkeypatch):
    """Torch's CPU as the device, with ROOM bytes of memory."""
    monkeypatch.setattr(arena, "DEVICE", "cpu")
    # Python functions of the tests, which take the place of kernels.
    monkeypatch.setattr(device, "launcher", lambda file, stage: load(file, stage).launch)
    for module in (device, running):
        monkeypatch.setattr(module, "CudaDevice", FakeGpu)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (ROOM, ROOM))


@pytest.fixture
def case(on_cpu, nest_of, machine_of, tmp_path):
    """The arguments that all functions take, for the text of a source."""

    def make(text):
        file = tmp_path / "kernel.py"
        file.write_text(text)
        nest = nest_of("scale", **SIZES)
        inputs = random_inputs(nest.spec, SIZES, np.random.default_rng(0))
        return Built(file, {"scale_0.warps": 4.0}), nest, machine_of("h200"), SIZES, inputs

    return make


def test_a_computer_without_a_gpu_says_so(machine_of):
    if torch.version.cuda or torch.version.hip:
        pytest.skip("torch here is built for GPUs")
    assert "built for no GPU" in device.present(machine_of("h200"))


@pytest.mark.parametrize(
    ("facts", "arch", "name", "words"),
    [
        (dict(name="NVIDIA H200", major=9, minor=0), 90, "H200", ""),
        (dict(name="H200", major=9, minor=0), 90, "H200", ""),
        (dict(name="NVIDIA H100", major=9, minor=0), 90, "H200", "is a NVIDIA H100, on which"),
        (
            dict(name="NVIDIA H200", major=9, minor=0),
            90,
            "H20",
            "nothing is measured: the target's is a H20",
        ),
        (dict(name="NVIDIA H20", major=9, minor=0), 90, "H200", "is a NVIDIA H20, on which"),
        (dict(name="NVIDIA H200 NVL", major=9, minor=0), 90, "H200", "is a NVIDIA H200 NVL, on"),
        (dict(name="NVIDIA A100", major=8, minor=0), 90, "", "of architecture 80"),
        (dict(name="X", major=9, minor=4, gcnArchName="gfx942:sramecc+"), "gfx942", "X", ""),
        (dict(name="X", major=9, minor=5, gcnArchName="gfx950"), "gfx942", "", "gfx950"),
    ],
)
def test_a_gpu_is_the_targets_or_says_why_not(monkeypatch, facts, arch, name, words):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda n: SimpleNamespace(**facts))
    lack = gpu.lack(arch, (name,))
    assert bool(lack) == bool(words) and words in lack


def test_a_process_that_asked_the_driver_looks_for_itself(monkeypatch):
    """Exporting uses the driver; after that no forked child can open the GPU."""
    looked = []
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    monkeypatch.setattr(torch.cuda, "_is_in_bad_fork", lambda: os.getpid() != ours)
    monkeypatch.setattr(running, "lack", lambda *words: looked.append(words) or "")
    ours = os.getpid()
    assert running.looked_in_child(90, ("H200",)) == "" and looked == [(90, ("H200",))]


def test_a_process_that_did_not_leaves_it_to_a_child(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    monkeypatch.setattr(torch.cuda, "_is_in_bad_fork", lambda: False)
    monkeypatch.setattr(running, "lack", lambda *words: str(os.getpid()))
    assert running.looked_in_child(90, ("H200",)) not in ("", str(os.getpid()))


def test_a_run_gives_the_outputs(case):
    given = case(PLAIN)
    got = device.run(*given)
    np.testing.assert_allclose(got["y"], 2 * given[-1]["x"] + 1)


def test_what_is_left_unwritten_stays_poisoned(case):
    assert np.isnan(device.run(*case("def launch(x, y):\n    pass\n"))["y"]).all()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("x.add_(1)", "changed its input `x`"),
        ("y.as_strided((1,), (1,), y.storage_offset() - 1).fill_(0)", "writes outside `y`"),
        ("x.as_strided((1,), (1,), x.storage_offset() + 1024).fill_(0)", "writes outside `x`"),
        ("raise RuntimeError('an illegal memory access')", "illegal memory access"),
    ],
)
def test_a_fault_of_a_kernel_is_told(case, line, words):
    with pytest.raises(BackendError, match=words) as seen:
        device.run(*case(f"{PLAIN}    {line}\n"))
    assert seen.value.stage == "check"


def test_a_read_past_the_end_is_nan(case):
    text = "def launch(x, y):\n    y.fill_(x.as_strided((1,), (1,), x.storage_offset() + 32)[0])\n"
    assert np.isnan(device.run(*case(text))["y"]).all()


def test_a_time_is_measured_on_shifted_inputs(case, monkeypatch):
    seen = []

    def measured(call, sets, gpu, seconds, clear, most):
        seen.extend(sets)
        for tensors in sets:
            call(tensors)
        return timing.Times(12.0, 11.0, 11.5, 13.0, 20, 5.0, 20.0)

    monkeypatch.setattr(timing, "measure", measured)
    given = case(PLAIN)
    timed = device.time(*given)
    assert (timed.us, timed.kind) == (12.0, "measured")
    assert timed.figures["us_p80"] == 13.0 and timed.figures["runs"] == 20
    assert len(seen) == running.MOST_SETS
    x = given[-1]["x"]
    np.testing.assert_array_equal(seen[0][0].numpy(), x)
    np.testing.assert_array_equal(np.sort(seen[1][0].numpy(), axis=None), np.sort(x, axis=None))
    assert not np.array_equal(seen[1][0].numpy(), x)
    np.testing.assert_allclose(timed.outputs["y"], 2 * x + 1)


def test_a_kernel_that_finds_its_results_there_gains_nothing(case):
    """It computes only where its output was not written yet, as a check and a warm-up need it."""
    text = "def launch(x, y):\n    if y.isnan().any():\n        y.copy_(2 * x + 1)\n    else:\n        y.zero_()\n"
    given = case(text)
    np.testing.assert_allclose(device.time(*given).outputs["y"], 2 * given[-1]["x"] + 1)


def test_a_timed_call_that_gives_something_else_is_seen(case):
    text = (
        "calls = []\n\n\ndef launch(x, y):\n    calls.append(1)\n"
        "    y.copy_(2 * x + 1)\n    if len(calls) > 20:\n        y[0] = len(calls)\n"
    )
    with pytest.raises(BackendError, match="another output `y` than a later one") as seen:
        device.time(*case(text))
    assert seen.value.stage == "check"


def test_sets_fit_the_memory(case, monkeypatch):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (0, ROOM))
    given = case(PLAIN)
    assert len(running.sets(given[1], SIZES, given[-1])) == 1


def test_integers_are_not_shifted():
    given = torch.arange(4096)
    assert torch.equal(running.shifted(given, 1), given)


def test_a_timeline_has_a_bar_for_each_launch(case, source_of, monkeypatch, tmp_path):
    monkeypatch.setattr(JITFunction, "run", lambda self, *args, **options: None)
    monkeypatch.setattr(
        timing, "measure", lambda *a: timing.Times(12.0, 11.0, 11.5, 13.0, 20, 5.0, 20.0)
    )
    trace = tmp_path / "trace.json"
    device.profile(*case(source_of("scale")), trace)
    (event,) = json.loads(trace.read_text())["traceEvents"]
    assert event["name"] == "scale_0" and event["ph"] == "X" and event["ts"] == 0
    assert event["args"] == {"scale_0.warps": 4.0}


@pytest.mark.parametrize("seen, number", [("", 0), ("1", 1), ("1,0", 1), ("GPU-8fc6", 0), ("7", 1)])
def test_processes_that_time_take_turns_on_the_gpu_that_they_see_first(
    tmp_path, monkeypatch, seen, number
):
    nodes_here = [tmp_path / "nvidia0", tmp_path / "nvidia1"]
    for node in nodes_here:
        node.touch()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", seen)
    turns = nodes.device_turns(tmp_path)
    assert Path(turns.door).is_file()
    others = [os.open(node, os.O_RDONLY) for node in nodes_here]
    with turns.alone():
        fcntl.flock(others[1 - number], fcntl.LOCK_EX | fcntl.LOCK_NB)
        with pytest.raises(BlockingIOError):
            fcntl.flock(others[number], fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.flock(others[number], fcntl.LOCK_EX | fcntl.LOCK_NB)
    for other in others:
        os.close(other)


def test_without_a_gpu_there_are_no_turns(tmp_path):
    with nodes.device_turns(tmp_path / "none").alone():
        pass


def test_clocks_are_told_where_the_library_is(monkeypatch):
    monkeypatch.setattr(nvml, "LIBRARY", "libnone.so")
    assert nvml.clocks("0") == {}
