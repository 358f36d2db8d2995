"""A HIP program: both sides compile with ROCm's headers, and the host launches the same as the
driver."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from backends.backend import BackendError
from backends.gpu.source.launches import Call
from backends.hip import build as building
from backends.hip import clang
from backends.hip.launcher import program_files
from backends.hip.testing.samples import CASES, backend, machine_of, work_of
from backends.parameters import parameters
from ir.lower.lower import lower
from ir.parse.parse import parse_schedule, parse_workload
from testing.slow import slow

TESTING = clang.HERE / "testing"
QUEUE = 5
RECURRENT = '''
def rnn(x: f32[T, B, I], w: f32[I, I]) -> f32[T, B, I]:
    """A recurrence, after a launch of another kernel."""
    g[t, b, j] = sum(x[t, b, i] * w[j, i], i)
    h[t, b, j] = tanh(pad(h[t {sign} 1, b, j], 0.0) + g[t, b, j])
    return h

tune(T=16, B=8, I=64)
check(T=4, B=3, I=17)
'''
ONE_STEP = "kernel(g)\ntile(t, size=1)\ntile(b, size=1)\nplace(t.outer, level=grid)\nplace(b.outer, level=grid)"


@dataclass
class Program:
    """The exported files, and the driver's expected calls."""

    file: Path
    calls: Sequence[Call]
    tensors: int


def exported(name: str, target: str, folder: Path) -> Program:
    """Writes a case at its last check sizes."""
    if name in CASES:
        work, lines = work_of(name), CASES[name][1]
    else:
        work, lines = parse_workload(RECURRENT.replace("{sign}", name), "rnn"), ONE_STEP
    schedule = parse_schedule(f"schedule({work.spec.name})\n{lines}\n")
    machine, sizes = machine_of(target), work.checks[-1]
    nest = lower(work.spec, schedule, machine, work.tune)
    built = backend().build(backend().emit(nest, machine), nest, machine, folder)
    to = folder / "program"
    to.mkdir()
    for file, text in backend().exported(built, nest, machine, sizes).items():
        (to / file).write_text(text, encoding="utf-8")
    _, calls = backend().calls(built, nest, machine, sizes)
    file = to / f"{work.spec.name}.hip"
    return Program(file, [call for call in calls if call.grid], len(parameters(nest)))


def compiled(file: Path, to: Path, *flags: str) -> None:
    """Compiles one side with ROCm's headers and the program's own headers only."""
    library, tool = clang.device_library(), clang.command()
    assert library and tool
    clang.run(
        *("clang", "-x", "hip", *clang.CODE_FLAGS, "-nogpuinc", "-nogpulib", "-fuse-cuid=none"),
        *("-D__HIP_PLATFORM_AMD__", "-include", str(TESTING / "clang.h")),
        *(f"-I{library.parents[1] / 'include'}", "-isystem", str(tool.parent / "lib" / "include")),
        *(*flags, str(file), "-o", str(to)),
    )


def launched(program: Program, failing: int = 0) -> list[str]:
    """The launches of the host code, a line each. failing: the launch that fails, 0: none."""
    folder, kinds = (
        program.file.parent,
        ("p" * len(c.tensors) + "i" * len(c.arguments) for c in program.calls),
    )
    compiled(program.file, folder / "host.o", "--offload-host-only", "-c")
    told = {
        "KINDS": ", ".join(f'"{kind}"' for kind in kinds),
        "POINTERS": ", ".join(f"(void*){1000 * n}" for n in range(program.tensors)),
        "RUN": f"{program.file.stem}_run",
        "FAILING": failing,
    }
    command = ["c++", "-std=c++20", *(f"-D{name}={value}" for name, value in told.items())]
    command += [str(TESTING / "runtime.cc"), "host.o", "-o", "run"]
    made = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert not made.returncode, made.stderr
    done = subprocess.run(["./run"], cwd=folder, capture_output=True, text=True)
    assert not done.returncode, done
    return done.stdout.splitlines()


def expected(call: Call) -> str:
    """A line of testing/runtime.cc."""
    numbers = (call.grid, 1, 1, call.block, 1, 1, call.shared, QUEUE)
    return " ".join(
        map(str, (call.name, *numbers, *(1000 * n for n in call.tensors), *call.arguments))
    )


@pytest.mark.parametrize(
    ("name", "target", "failing", "count"),
    [slow("scaled", "mi350", 0, 1), ("+", "mi300", 0, 5), ("-", "mi300", 3, 3)],
)
def test_the_host_launches_what_the_driver_would(name, target, failing, count, tmp_path):
    program = exported(name, target, tmp_path)
    found = launched(program, failing)
    assert found == [expected(call) for call in program.calls][:count] and len(found) == count
    assert program.file.read_text().count("hipLaunchKernelGGL(") == min(count, 2)


@pytest.mark.parametrize(
    ("name", "target", "arch"), [slow("rows", "mi300", "gfx942"), ("scaled", "mi350", "gfx950")]
)
def test_the_device_code_compiles_with_rocms_headers_alone(name, target, arch, tmp_path):
    program, to = exported(name, target, tmp_path), tmp_path / "device.s"
    flags = ["--offload-device-only", "--no-gpu-bundle-output", f"--offload-arch={arch}", "-S"]
    library = clang.device_library()
    for part in (library, library.with_name("ockl.bc")):
        flags += ["-Xclang", "-mlink-builtin-bitcode", "-Xclang", str(part)]
    compiled(program.file, to, *flags)
    found = building.kernels(to.read_text(encoding="utf-8"))
    assert found.keys() == {call.name for call in program.calls}
    assert all(building.code(text).spills == 0 for text in found.values())


def test_a_kernel_with_the_name_of_a_header_is_refused(tmp_path):
    file = tmp_path / "kernel.hip"
    with pytest.raises(BackendError, match="another `matrices.h`; rename the kernel"):
        program_files("matrices", "", (), file, {}, "gfx942")


def test_the_header_is_c(tmp_path):
    program = exported("rows", "mi300", tmp_path)
    text = program.file.with_suffix(".h").read_text(encoding="utf-8")
    assert "--offload-arch=gfx942" in text and "f32[" in text
    (tmp_path / "user.c").write_text(f'#include "{program.file.stem}.h"\n')
    include = [f"-I{clang.device_library().parents[1] / 'include'}", f"-I{program.file.parent}"]
    command = ["cc", "-c", "-Wall", "-D__HIP_PLATFORM_AMD__", *include, "user.c"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
