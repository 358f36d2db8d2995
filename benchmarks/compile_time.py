"""Times how long whole modules take from PyTorch to built kernels, and writes a result file.

Each module is compiled in its own process, without records and without a search. A row has wall
seconds and processor seconds of the process and of the compilers that it starts: `start` (import of
PyTorch and the project), `import` (the module as equations), `schedule` (partition, schedules,
sources) and `build`. Run nothing else meanwhile: `load` is the load of the machine before a row.
"""

from __future__ import annotations

import time

STARTED = time.perf_counter(), time.process_time()

import argparse  # noqa: E402 - the clock starts before any import
import json  # noqa: E402
import os  # noqa: E402
import platform  # noqa: E402
import resource  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
from collections.abc import Callable  # noqa: E402
from datetime import date  # noqa: E402
from importlib.metadata import version  # noqa: E402
from itertools import product  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

Maker = Callable[[], tuple[Any, tuple[Any, ...]]]  # Makes a module and the arguments of a call.
Clock = tuple[float, float]  # Wall seconds, processor seconds.
PARTS = ("start", "import", "schedule", "build")
LIMITS = {"encoder": 20.0, "resnet50": 30.0}  # Limits of the wall time on two cores, in seconds.
EXAMPLES = """
examples:
  python3 -m benchmarks.compile_time --target=cpu --target=h200 --out=benchmarks/results/cpu/compile_time.json
  python3 -m benchmarks.compile_time --module=encoder --target=h200
"""


def now() -> Clock:
    """Reads the clocks of this process. The processor time includes compilers that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    busy = time.process_time() + children.ru_utime + children.ru_stime
    return time.perf_counter(), busy


def timed(
    maker: Maker, target: str, backend: str | None = None, start: Clock | None = None
) -> dict[str, Any]:
    """Returns the row of a module's compilation in this process. start: when the process started.

    Raises KernelError and BackendError as `compile_module` does.
    """
    clocks = [start or now()]
    from tempfile import TemporaryDirectory

    from backends.compiled import Kernels, built, networks
    from backends.registry import backend_for, served_by
    from backends.registry import target as machine_of
    from frontends.pytorch.external import outside
    from frontends.pytorch.module import imported

    clocks.append(now())
    subject, args = maker()  # Time of user code.
    begun = now()
    made = imported(subject, args)
    clocks.append(now())
    machine = machine_of(target)
    served = backend_for(machine, backend)
    kernels = Kernels(served_by(machine, served), served, guessed=True)
    call, before = networks(made.spec, {}, made.aliases, kernels, outside(made), made.fixed)
    clocks.append(now())
    with TemporaryDirectory(prefix="compile_time-") as folder:
        run = built(call, kernels, Path(folder), constants=before)
        clocks.append(now())
    befores = [clocks[0], begun, *clocks[2:-1]]
    wall, cpu = (
        {
            part: round(after[n] - before[n], 2)
            for part, before, after in zip(PARTS, befores, clocks[1:], strict=True)
        }
        for n in (0, 1)
    )
    return {
        "target": target,
        "backend": served.manifest.name,
        "steps": len(call.steps) + (len(before.steps) if before else 0),
        "kernels": len(run.kernels),
        "wall_s": wall,
        "cpu_s": cpu,
        "total_wall_s": round(sum(wall.values()), 2),
        "total_cpu_s": round(sum(cpu.values()), 2),
    }


def encoder() -> tuple[Any, tuple[Any, ...]]:
    """Makes a transformer encoder of the size of BERT-base: 12 layers of width 768, 128 tokens."""
    import torch
    from torch import nn

    layer = nn.TransformerEncoderLayer(768, 12, 3072, 0.0, "gelu", batch_first=True)
    stack = nn.TransformerEncoder(layer, 12, enable_nested_tensor=False)
    return stack.eval().requires_grad_(False), (torch.randn(1, 128, 768),)


def resnet50() -> tuple[Any, tuple[Any, ...]]:
    """Makes a ResNet-50 with one image of 224 by 224."""
    import torch

    from benchmarks.resnet import resnet

    return resnet((3, 4, 6, 3)).eval().requires_grad_(False), (torch.randn(1, 3, 224, 224),)


MODULES: dict[str, Maker] = {
    "encoder": encoder,
    "resnet50": resnet50,
}


def row(name: str, target: str, backend: str | None) -> dict[str, Any]:
    """Returns a module's row, from its own process."""
    command = [sys.executable, "-m", "benchmarks.compile_time", "--child"]
    command += [f"--module={name}", f"--target={target}"]
    command += [f"--backend={backend}"] if backend else []
    load = round(os.getloadavg()[0], 2)
    around = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    found = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=around)
    return {"module": name, "limit_s": LIMITS[name], "load": load} | json.loads(found.stdout)


def options(words: list[str] | None = None) -> argparse.Namespace:
    """Parses the options of the command."""
    made = argparse.ArgumentParser(
        prog="benchmarks.compile_time",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--target", action="append", help="a target; repeatable (default: cpu)")
    made.add_argument(
        "--backend", help="a backend of the target (default: the first available one)"
    )
    made.add_argument("--module", choices=MODULES, help="a module (default: all)")
    made.add_argument("--out", type=Path, metavar="FILE", help="the result file")
    made.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    return made.parse_args(words)


def main() -> int:
    """Times the modules, and writes the file after each row."""
    asked = options()
    if asked.child:
        (target,) = asked.target
        print(json.dumps(timed(MODULES[asked.module], target, asked.backend, STARTED)))
        return 0
    from backends.shared.host import processor
    from benchmarks.results import save

    head = {
        "command": "python3 -m benchmarks.compile_time " + " ".join(sys.argv[1:]),
        "date": date.today().isoformat(),
        "machine": f"{processor()}, {len(os.sched_getaffinity(0))} cores",
        "versions": {"python": platform.python_version(), "torch": version("torch")},
        "time_kind": "measured",
    }
    rows: list[dict[str, Any]] = []
    names = (asked.module,) if asked.module else tuple(MODULES)
    for name, target in product(names, asked.target or ("cpu",)):
        rows.append(row(name, target, asked.backend))
        print(json.dumps(rows[-1]), flush=True)
        if asked.out:
            save(asked.out, {**head, "rows": rows})
    return 0


if __name__ == "__main__":
    sys.exit(main())
