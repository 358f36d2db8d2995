"""What a clean process compiled is ready before a check: the process that judges compiles nothing."""

import shutil
from contextlib import nullcontext

import pytest
from triton import knobs
from triton.runtime import driver

from backends.backend import BackendError
from backends.gpu.child import in_child
from backends.gpu.device import running
from backends.gpu.device.tensors import unplaced
from backends.gpu.testing.clean import clean_process
from backends.parameters import parameters
from backends.registry import REGISTRY
from backends.triton import backend
from backends.triton.backend import Triton
from backends.triton.build import compile as compiler
from backends.triton.device import device
from backends.triton.testing.chip import Chip
from ir.sizes import bind

GUARD = 1800.0  # seconds: only what hangs waits so long
SCALE = [dict(M=3, N=90), dict(M=1, N=7), dict(M=64, N=1), dict(M=64, N=100), dict(M=64, N=512)]
PRODUCT = dict(M=512, N=256, K=512)
PRODUCTS = [PRODUCT, PRODUCT | dict(K=511), PRODUCT | dict(M=1)]


@pytest.fixture
def judged(nest_of, machine_of, source_of, tmp_path, monkeypatch):
    """What `work` gives of a built source's nest in a process that has a GPU, with the kernels that it compiled
    and the codes that it loaded."""
    monkeypatch.setattr(backend, "present", lambda machine: "")
    monkeypatch.setattr(device, "open_device", lambda: None)
    monkeypatch.setattr(running, "run", lambda launch, nest, sizes, inputs: {})
    chip, tongue = machine_of("h200"), Triton(REGISTRY.manifest("triton"))

    def told(work, source, sizes, clean=clean_process):
        nest, place = nest_of(source, **sizes), tmp_path / "judge"
        place.mkdir()

        def child():
            here, hits = Chip(), []
            with clean(tmp_path / "clean"):
                built = compiler.build(source_of(source), nest, chip, place)
                driver.set_active(here)
                knobs.compilation.listener = lambda **told: hits.append(told["cache_hit"])
                found = work(tongue, built, nest, chip, here)
            return found, hits.count(False), len(here.loaded)

        return in_child(child, GUARD, "check", tmp_path)

    return told


@pytest.mark.parametrize(
    ("source", "every", "codes"), [("scale", SCALE, 5), ("matmul", PRODUCTS, 3)]
)
def test_a_check_finds_the_code_of_all_its_sizes_loaded(judged, source, every, codes):
    def work(tongue, built, nest, chip, here):
        tongue.compile_at(built, nest, chip, every)
        ready = len(here.loaded)
        for sizes in every:
            tongue.run(built, nest, chip, sizes, {})
        return ready

    assert judged(work, source, every[-1]) == (codes, 0, codes)


def test_the_clean_process_compiles_what_a_run_lacks(judged):
    def work(tongue, built, nest, chip, here):
        for sizes in SCALE:
            tongue.run(built, nest, chip, sizes, {})

    assert judged(work, "scale", SCALE[0]) == (None, 0, 5)


def test_what_nobody_compiled_is_not_compiled_by_the_judge(judged):
    def work(tongue, built, nest, chip, here):
        shutil.rmtree(built.file.parent / compiler.CACHE)
        with pytest.raises(BackendError, match="`scale_0` was not compiled"):
            tongue.run(built, nest, chip, SCALE[0], {})

    assert judged(work, "scale", SCALE[0]) == (None, 0, 0)


def test_without_a_clean_process_what_is_lacking_is_compiled_by_the_run(judged):
    def work(tongue, built, nest, chip, here):
        shutil.rmtree(built.file.parent / compiler.CACHE)
        tongue.run(built, nest, chip, SCALE[0], {})

    assert judged(work, "scale", SCALE[0], nullcontext) == (None, 1, 1)


def test_a_launcher_of_tensors_finds_what_a_clean_process_built(judged):
    def work(tongue, built, nest, chip, here):
        bound = bind(nest.spec, SCALE[0])
        launch = device.tensor_launcher(built.file)
        launch(*(unplaced(p, bound) for p in parameters(nest)))

    assert judged(work, "scale", SCALE[0]) == (None, 0, 1)
