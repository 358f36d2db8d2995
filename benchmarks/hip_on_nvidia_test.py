"""Tests that HIP kernels without matrix instructions compile for an NVIDIA GPU and are launched
there."""

import json

import pytest

from backends.backend import BackendError
from backends.gpu.cubins import driver
from backends.gpu.device import fake
from backends.hip import backend as hip
from backends.measure import check
from backends.registry import REGISTRY, backend, served_by, target
from benchmarks.hip_on_nvidia import LANGUAGE, SOURCE, Witness, has_matmul, main
from ir.autoschedule.autoschedule import autoschedule
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.parse.parse import parse_workload
from ir.workload import LIBRARY


def test_each_kernel_without_a_matmul_compiles(tmp_path):
    file = tmp_path / "found.json"
    words = ["--target=h200", f"--out={file}", "--dry"]
    assert main([*words, "--kernels=cumsum,map_id,softmax,pairwise_dot"]) == 0
    found = json.loads(file.read_text(encoding="utf-8"))
    assert found["summary"] == {"kernels": 3, "compiled": 3}
    assert [r["kernel"] for r in found["rows"] if "left_out" in r] == ["pairwise_dot"]
    assert not any(r.get("correct") for r in found["rows"])


def test_a_target_without_that_language_is_refused(tmp_path):
    with pytest.raises(KernelError, match="no GPU of NVIDIA"):
        main(["--target=mi300", f"--out={tmp_path / 'x.json'}", "--dry"])


def test_without_the_gpu_nothing_is_said_to_be_correct(tmp_path):
    with pytest.raises(KernelError, match="there is no `h200` in this computer"):
        main(["--target=h200", f"--out={tmp_path / 'x.json'}", "--kernels=softmax"])
    assert not (tmp_path / "x.json").exists()


@pytest.mark.parametrize("right", [True, False])
def test_results_of_the_gpu_are_compared(right, tmp_path, monkeypatch):
    """Uses torch's CPU as the GPU, with launches that compute the softmax or do not."""
    fake.stand_in(monkeypatch, hip)
    seen = []

    def launcher(image, calls, stream):
        seen.append((image.read_bytes()[:4], [c.name for c in calls]))

        def launch(x, y):
            y.copy_(x.softmax(1) if right else x)

        return launch

    monkeypatch.setattr(driver, "launcher", launcher)
    machine = served_by(target(SOURCE), backend(LANGUAGE))
    work = parse_workload((LIBRARY / "softmax.kir").read_text(encoding="utf-8"), "softmax")
    schedule = autoschedule(work.spec, machine, work.tune)
    assert not has_matmul(schedule)
    nest = lower(work.spec, schedule, machine, work.tune)
    source = backend(LANGUAGE).emit(nest, machine)
    built = backend(LANGUAGE).build(source, nest, machine, tmp_path)
    witness = Witness(served_by(target("h200"), REGISTRY.backend("cuda")))
    arguments = (witness, built, nest, machine, work.spec, work.checks[1])
    if right:
        check(*arguments, seed=1)
    else:
        with pytest.raises(BackendError, match="`y`"):
            check(*arguments, seed=1)
    assert seen[0] == (b"\x7fELF", ["softmax_0"])
