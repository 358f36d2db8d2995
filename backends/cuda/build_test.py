"""Compiling: errors with their lines, limits, one code for each set of constants."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from backends.backend import BackendError
from backends.cuda import nvrtc
from backends.cuda.backend import Cuda
from backends.cuda.testing.emulation import machine_of
from backends.cuda.testing.samples import backend, emitted, nest_of
from backends.gpu.assembly import cubin, sass
from backends.gpu.cubins import build as building
from backends.gpu.cubins.code import cuobjdump
from machines.gpu.facts import facts

H200 = machine_of("h200")


def built(source, folder, name="rows", machine=H200):
    return backend().build(source, nest_of(name, machine.name), machine, folder)


def test_an_error_is_told_with_its_line(tmp_path):
    source = emitted("rows").replace("fn::exp2_flushed(", "fn::exp3(")
    line = next(n for n, text in enumerate(source.splitlines(), 1) if "exp3" in text)
    with pytest.raises(BackendError) as seen:
        built(source, tmp_path)
    assert seen.value.stage == "build"
    assert seen.value.reason.startswith(f'kernel.cu, line {line}: namespace "fn" has no member')


def test_the_compiler_has_what_the_language_has_not(tmp_path):
    source = 'extern "C" __global__ void k(float* y) { asm("nonsense.f32 %0;" : "=f"(y[0])); }'
    with pytest.raises(BackendError, match="nonsense"):
        nvrtc.compiled(source, "k.cu", {}, ["--gpu-architecture=sm_80"])


def test_a_limit_of_registers_is_kept(tmp_path):
    nest = nest_of("staged", H200.name)
    figures = {}
    for limit in (0, 64):
        launches = tuple(replace(one, registers=limit) for one in nest.launches)
        limited = replace(nest, launches=launches)
        (tmp_path / str(limit)).mkdir()
        made = backend().build(backend().emit(limited, H200), limited, H200, tmp_path / str(limit))
        figures[limit] = made.figures[f"{nest.launches[0].name}.registers"]
    assert figures[64] <= 64 < figures[0]


def test_a_source_without_a_launch_is_refused(tmp_path):
    with pytest.raises(BackendError, match="the source has no kernel `row_softmax_0`"):
        built(emitted("rows").replace(" row_softmax_0(", " row_softmax_1("), tmp_path)


def test_more_shared_memory_than_there_is_is_refused(tmp_path, monkeypatch):
    small = {**facts(H200), "shared_bytes_per_program": 1000}
    monkeypatch.setattr(building, "facts", lambda machine: small)
    with pytest.raises(BackendError, match="bytes of shared memory; there are 1000"):
        built(emitted("staged"), tmp_path, "staged")


def test_a_compiler_that_hangs_is_stopped(tmp_path, monkeypatch):
    def hang(*given):
        while True:
            pass

    monkeypatch.setattr(Cuda, "language", replace(Cuda.language, seconds=0.3))
    monkeypatch.setattr(nvrtc, "compiled", hang)
    with pytest.raises(BackendError, match="still at it after 0.3 s"):
        built(emitted("rows"), tmp_path)


def test_the_compilers_memory_is_limited(tmp_path, monkeypatch):
    def eat(*given):
        return bytes(1 << 30)

    monkeypatch.setattr(Cuda, "language", replace(Cuda.language, memory=1 << 28))
    monkeypatch.setattr(nvrtc, "compiled", eat)
    with pytest.raises(BackendError, match="MemoryError|died"):
        built(emitted("rows"), tmp_path)


def test_each_set_of_constants_has_its_code(tmp_path, monkeypatch):
    made = built(emitted("rows"), tmp_path)
    given = json.loads((tmp_path / building.LAUNCHES).read_text())
    assert given == building.launches(made.file)
    first = Cuda.language.image(made.file, H200, {"M": 8, "K": 1000})
    assert Cuda.language.image(made.file, H200, {"M": 12, "K": 1000}) == first
    assert Cuda.language.image(made.file, H200, {"M": 12, "K": 1001}) != first  # no vectors
    monkeypatch.setattr(nvrtc, "compiled", None)  # what is there is not compiled again
    assert Cuda.language.image(made.file, H200, {"M": 16, "K": 1000}) == first


def test_code_for_several_sizes_is_made_at_once(tmp_path, monkeypatch):
    made = built(emitted("rows"), tmp_path)
    every = [{"M": m, "K": k} for m in (8, 12) for k in (1000, 1001, 1002)]
    children = []
    asked = building.apart
    monkeypatch.setattr(building, "apart", lambda *a, **k: children.append(a) or asked(*a, **k))
    images = Cuda.language.images(made.file, H200, every)
    assert len(children) == 1 and images[:3] == images[3:] and len(set(images)) == 3 - 1
    alone = [Cuda.language.image(made.file, H200, sizes) for sizes in every]
    assert alone == images and len(children) == 1
    (tmp_path / "again").mkdir()
    again = built(emitted("rows"), tmp_path / "again")
    for image, sizes in zip(images, every, strict=True):  # as one after another
        assert Cuda.language.image(again.file, H200, sizes).read_bytes() == image.read_bytes()


def test_code_that_is_not_made_at_one_size_says_why(tmp_path):
    made = built(emitted("rows"), tmp_path)
    text, first = made.file.read_text(), "  constexpr int k_n"
    made.file.write_text(text.replace(first, f"  static_assert(ALIGNED_X);\n{first}", 1))
    with pytest.raises(BackendError, match="static assert") as seen:
        Cuda.language.images(made.file, H200, [{"M": 8, "K": 1000}, {"M": 8, "K": 1001}])
    assert seen.value.stage == "build"


def test_figures_are_those_of_each_launch(tmp_path):
    figures = built(emitted("staged"), tmp_path, "staged").figures
    name = nest_of("staged").launches[0].name
    assert figures[f"{name}.mix.matrix"] > 0 and figures[f"{name}.mix.copy_async"] > 0
    assert figures[f"{name}.loop.matrix"] > 0 and figures[f"{name}.stages"] == 4
    assert figures["shared_bytes"] == figures[f"{name}.shared_bytes"] > 0
    assert figures["registers"] == figures[f"{name}.registers"] > 0


def test_the_disassembler_agrees_with_the_reader(tmp_path):
    made = built(emitted("staged"), tmp_path, "staged")
    image = Cuda.language.image(made.file, H200, dict(nest_of("staged").sizes))
    ((name, code),) = cubin.functions(image.read_bytes(), 90).items()
    assert sass.code(image, cuobjdump(), name) == code


def test_several_kernels_are_told_apart(tmp_path):
    made = built(emitted("recurrent"), tmp_path, "recurrent")
    (image,) = tmp_path.glob("*.cubin")
    found = cubin.functions(image.read_bytes(), 90)
    assert len(found) > 1 and {*found} == {one.name for one in nest_of("recurrent").launches}
    for name, code in found.items():
        assert sass.code(image, cuobjdump(), name) == code
    assert made.figures["registers"] == max(c.registers for c in found.values())
