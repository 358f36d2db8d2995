"""Runs emitted HIP kernels without matrix instructions on an NVIDIA GPU, and compares with the
reference.

This complements the emulator: the same source is compiled with another header and runs on hardware
with truly parallel threads. Each library kernel has the first schedule of a search for the AMD
target. With --dry the code is only compiled.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from backends.backend import Arrays, BackendError, Built, Sizes
from backends.cuda import nvrtc
from backends.cuda.build import HEADERS, OPTIONS
from backends.gpu.cubins import driver
from backends.gpu.launched import torch_stream
from backends.gpu.source.launches import calls, constants
from backends.gpu.source.names import known_sizes
from backends.hip.backend import program, spelled
from backends.hip.build import launches, written
from backends.measure import check
from backends.registry import REGISTRY, backend, served_by, target
from benchmarks.device import require
from benchmarks.results import save
from benchmarks.shapes import asked_kernels
from ir.autoschedule.autoschedule import autoschedule
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.machine import Machine
from ir.nest.nest import LoopNest
from ir.parse.parse import parse_workload
from ir.schedule import Schedule
from ir.workload import LIBRARY

# The backend of the kernels, and the target that they are emitted for.
LANGUAGE, SOURCE = "hip", "mi300"
SEED = 3
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Witness:
    """Runs builds of one backend's sources on the GPU of another's target."""

    machine: Machine  # The machine of the GPU.

    def image(self, built: Built, known: Mapping[str, int]) -> Path:
        """Returns the cubin of a built source at some sizes."""
        here = Path(__file__).with_suffix(".h").read_text(encoding="utf-8")
        headers = {n: f.read_text(encoding="utf-8") for n, f in HEADERS.items()}
        headers["cuda_kernel.h"] = headers.pop("kernel.h")
        headers |= {"kernel.h": here, "hip/hip_runtime.h": ""}
        options = [
            f"--gpu-architecture=sm_{self.machine.details['cuda']['arch']}",
            *OPTIONS,
            *(f"-D{n}={v}" for n, v in constants(launches(built.file), known).items()),
        ]
        source = built.file.read_text(encoding="utf-8")
        made = built.file.with_suffix(".cubin")
        made.write_bytes(nvrtc.compiled(source, built.file.name, headers, options))
        return made

    def run(
        self, built: Built, nest: LoopNest, machine: Machine, sizes: Sizes, inputs: Arrays
    ) -> dict[str, np.ndarray]:
        """Returns the outputs. Their buffers were poisoned before."""
        known = known_sizes(nest, spelled(nest), sizes)
        torch_stream.ready()
        made = tuple(calls(launches(built.file), known))
        launch = driver.launcher(self.image(built, known), made, torch_stream.stream)
        return torch_stream.run(launch, nest, sizes, inputs)


def has_matmul(schedule: Schedule) -> bool:
    """Whether a schedule uses the matrix unit, whose instructions the GPU lacks."""
    return any(d.verb == "compute" and d.option("unit") == "matrix" for d in schedule.decisions)


def row(kernel: str, witness: Witness, dry: bool) -> Row:
    """Returns the row of a library kernel: its result at all its check sizes."""
    serving = backend(LANGUAGE)
    machine = served_by(target(SOURCE), serving)
    work = parse_workload((LIBRARY / f"{kernel}.kir").read_text(encoding="utf-8"), kernel)
    schedule = autoschedule(work.spec, machine, work.timed_sizes)
    if has_matmul(schedule):
        return {"kernel": kernel, "left_out": "it has matrix instructions"}
    found: Row = {"kernel": kernel, "correct": False, "checked": []}
    try:
        nest = lower(work.spec, schedule, machine, work.timed_sizes)
        with tempfile.TemporaryDirectory() as folder:
            made = program(spelled(nest), machine)
            built = Built(written(serving.emit(nest, machine), made, Path(folder)))
            for sizes in work.checks:
                if dry:
                    witness.image(built, known_sizes(nest, spelled(nest), sizes))
                else:
                    check(witness, built, nest, machine, work.spec, sizes, SEED)
                    found["checked"].append(dict(sizes))
    except (BackendError, KernelError) as error:
        return found | {"reason": str(error)}
    return found | {"correct": not dry, "compiled": True, "schedule": str(nest.schedule)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Compiles and runs, and writes the file. Returns 1 if a kernel is wrong."""
    made = argparse.ArgumentParser(prog="benchmarks.hip_on_nvidia", description=__doc__)
    made.add_argument("--target", required=True, help="the target of the NVIDIA GPU")
    made.add_argument("--out", required=True, type=Path, help="the result file")
    made.add_argument("--kernels", default="", help="kernels, separated by commas (default: all)")
    made.add_argument("--dry", action="store_true", help="only compile")
    given = made.parse_args(arguments)
    machine = target(given.target)
    if "cuda" not in machine.backends:
        raise KernelError(f"`{given.target}` is no GPU of NVIDIA", where="--target")
    witness = Witness(served_by(machine, REGISTRY.backend("cuda")))
    available = {} if given.dry else require(machine, "run it where that chip is, or give --dry")
    rows = []
    for kernel in asked_kernels(given.kernels):
        rows.append(row(kernel, witness, given.dry))
        print(json.dumps(rows[-1]), flush=True)
    done = "compiled" if given.dry else "correct"
    run = [r for r in rows if "left_out" not in r]
    flag = " --dry" if given.dry else ""
    save(
        given.out,
        {
            "command": f"python3 -m benchmarks.hip_on_nvidia --target={given.target} "
            f"--out={given.out.name}{flag}",
            "date": date.today().isoformat(),
            "machine": available.get("device") or machine.title,
            "toolchains": {"nvrtc": nvrtc.version()},
            "emitted_for": SOURCE,
            "correct_by": available.get("correct_by"),
            "summary": {"kernels": len(run), done: sum(bool(r.get(done)) for r in run)},
            "rows": rows,
        },
    )
    return int(not run or not all(r.get(done) for r in run))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KernelError as error:
        print(f"benchmarks.hip_on_nvidia: {error}", file=sys.stderr)
        sys.exit(2)
