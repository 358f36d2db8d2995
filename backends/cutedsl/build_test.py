"""Building without a GPU: cubins, their figures, and what is refused."""

import subprocess
from dataclasses import replace

import pytest

from backends import parallel
from backends.backend import BackendError
from backends.cutedsl import build as building
from backends.cutedsl.testing.samples import CASES, backend, machine_of, nest_of, own_machine
from backends.gpu.cubins.build import launches
from backends.gpu.cubins.code import cuobjdump
from testing.slow import slow_but

ARCH = {"h200": 90, "b200": 100}
INSTRUCTIONS = {  # of cases that are there for them
    "clustered": "UTMALDG.2D.MULTICAST",
    "windowed": "UTMALDG.4D.MULTICAST",
    "stream_k": "ATOMG",
    "eight": "QGMMA.64x64x32.F32.E4M3.E4M3",
    "whole": "IGMMA.64x64x32.S8.S8",
    "whole_warps": "IMMA.16832.S8.S8",
    "accumulated": "UTCHMMA",
    "accumulated_eight": "UTCQMMA",
}


def built(name, folder, machine=""):
    machine = machine or own_machine(name)
    served = machine_of(machine)
    nest = nest_of(name, machine)
    return backend().build(backend().emit(nest, served), nest, served, folder)


def sass(folder):
    """The instructions of the cubin in a folder."""
    words = [str(cuobjdump()), "-sass", str(next(folder.glob("*.cubin")))]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("name", slow_but(lambda name: name in list(CASES)[::3], CASES))
def test_a_kernel_compiles_without_spills(name, tmp_path):
    figures = built(name, tmp_path).figures
    assert figures["spills"] == 0 and 0 < figures["registers"] <= 255
    assert figures["occupancy"] > 0
    if name in INSTRUCTIONS:
        assert INSTRUCTIONS[name] in sass(tmp_path)


@pytest.mark.parametrize("machine", ARCH)
def test_the_code_is_for_the_targets_architecture(machine, tmp_path):
    built("rows", tmp_path, machine)
    image = next(tmp_path.glob("*.cubin")).read_bytes()
    assert (
        image[:4] == b"\x7fELF"
        and image[0x31] in (ARCH[machine], 0)
        or image[0x30] == ARCH[machine]
    )


@pytest.mark.parametrize("limits", [(24, 0, 0), (0, 24, 0)])
def test_limits_of_registers_are_kept_by_each_launch(limits, tmp_path):
    served, nest = machine_of("h200"), nest_of("recurrent")
    free = built("recurrent", tmp_path).figures
    launches = [replace(one, registers=n) for one, n in zip(nest.launches, limits, strict=True)]
    nest = replace(nest, launches=tuple(launches))
    (tmp_path / "limited").mkdir()
    text = backend().emit(nest, served)
    figures = backend().build(text, nest, served, tmp_path / "limited").figures
    for one in launches:
        found, before = (f[f"{one.name}.registers"] for f in (figures, free))
        assert found <= one.registers < before if one.registers else found == before


@pytest.mark.parametrize("processes", [1, 4])
def test_code_for_several_sizes_is_that_of_each_alone(processes, monkeypatch, tmp_path):
    monkeypatch.setattr(parallel, "cores", lambda: processes)
    nest, served = nest_of("rows"), machine_of("h200")
    sizes = [{"M": 64, "K": k} for k in (100, 256, 512, 1024)]
    for folder in ("together", "alone"):
        (tmp_path / folder).mkdir()
    backend().complete(built("rows", tmp_path / "together"), nest, served, sizes)
    one = built("rows", tmp_path / "alone")
    for size in sizes:
        backend().complete(one, nest, served, [size])
    found, expected = (
        {f.name: f.read_bytes() for f in (tmp_path / folder).glob("*.cubin")}
        for folder in ("together", "alone")
    )
    assert len(set(expected.values())) >= len(sizes) and found == expected


@pytest.mark.parametrize("name", ["produced", "fetched", "pingpong"])
def test_matmuls_of_a_warpgroup_stay_in_flight(name, tmp_path):
    built(name, tmp_path)
    text = sass(tmp_path)
    # Where the compiler serializes them, each begins anew.
    issues, begun = (text.count(word) for word in ("HGMMA", "WARPGROUP.ARRIVE"))
    assert 0 < begun < issues and "UTMALDG" in text


def test_a_launch_is_data_that_the_driver_takes(tmp_path):
    file = built("produced", tmp_path).file
    launch = launches(file)["groups"][0]["launches"][0]
    assert (launch["block"], [m["tensor"] for m in launch["maps"]]) == (384, ["x", "w", "y"])
    assert launch["arguments"] == ["M", "K", "N"]


def test_constants_are_set_as_they_are():
    text = "K_WIDTH = 1024\nEVEN_M = True\n# K_WIDTH = 3\nOTHER = 5\n"
    found = building.with_constants(text, {"K_WIDTH": 256, "EVEN_M": 0})
    assert found == "K_WIDTH = 256\nEVEN_M = False\n# K_WIDTH = 3\nOTHER = 5\n"


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("def row_softmax_0(", "def row_softmax_1(", "has no kernel `row_softmax_0`"),
        ("mask_m & mask_k[k_i]", "mask_m & mask_k", "unsupported operand"),
        ("fn.exp2_flushed(", "fn.atan2(", "missing 1 required positional argument"),
    ],
)
def test_what_the_compiler_refuses_is_a_fault_of_the_kernel(before, after, why, tmp_path):
    served, nest = machine_of("h200"), nest_of("rows")
    text = backend().emit(nest, served)
    assert before in text
    with pytest.raises(BackendError, match=why) as seen:
        backend().build(text.replace(before, after, 1), nest, served, tmp_path)
    assert seen.value.stage == "build"
