"""Races our search against Helion's autotuner: the same time for each, for the same kernel on one device.

For each kernel one process searches with `speciate.evolve` from the equations, with the seed
schedules of every search and without records. Then another process runs Helion's tuner on kernels
of its own examples. `--helion` names a checkout of its repository. Helion forks its compilers, so
nothing else of ours runs in that process. A row has the settings that Helion received
(`helion_settings`). If Helion has several forms of a kernel, each is tuned for as long, and the
fastest counts. Both sides are checked against float64, then timed alternately on the same inputs.
A row is written when its kernel ends.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import date
from functools import partial
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

import speciate
from backends.gpu.device.gpu import CudaDevice
from backends.registry import target
from benchmarks import device as machine_room
from benchmarks.against_float64 import exact, judge
from benchmarks.baselines import BASELINES
from benchmarks.entrant import ROOT
from benchmarks.inputs import draw
from benchmarks.notes import MOST_WORDS
from benchmarks.results import Table, put, read, save
from benchmarks.shapes import shape_key
from benchmarks.timing import TimedCall, measure, steadiest
from ir.digest import text_digest
from ir.errors import KernelError
from ir.parse.parse import parse_workload
from ir.workload import LIBRARY, Sizes, Workload

SIZES: Mapping[str, Sizes] = {
    "softmax": dict(M=4096, K=4096),
    "layer_norm": dict(M=4096, K=4096),
    "matmul_bias_gelu": dict(M=4096, K=1024, N=4096),
    "attention": dict(H=32, M=2048, N=2048, D=64),
}
# Helion's forms of each kernel: the file in its examples, and functions in it.
FORMS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "softmax": ("softmax", ("softmax", "softmax_two_pass")),
    "layer_norm": ("layer_norm", ("layer_norm_fwd",)),
    "matmul_bias_gelu": ("matmul", ("matmul",)),
    "attention": ("attention", ("attention_output",)),
}
SETS = 3  # Sets of inputs that the calls alternate between.
GRACE = 600.0  # Limit of one kernel beyond its search time, in seconds.
# Share of the search time that Helion's compilers may take for one configuration. Helion first
# compiles a hundred configurations, and times none before all have compiled or timed out. Its
# default limit is 60 s. For some configurations with large tiles, Triton takes longer than the
# whole budget.
COMPILE_SHARE = 0.2
LEAST_COMPILE = 4.0
OURS, TOLD = "ours", "told.json"  # Files that the search leaves for the race.
Form = Callable[..., Tensor]
EXAMPLES = """
examples:
  git clone https://github.com/pytorch/helion
  python3 -m benchmarks.autotuners --target=h200 --helion=helion --seconds=60 \\
      --out=benchmarks/results/h200/autotuners.json
  python3 -m benchmarks.autotuners --target=h200 --helion=helion --seconds=20 --kernels=softmax --out=r.json
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command. Returns exit code 2 for wrong usage, 1 if a kernel has no row that can be
    compared."""
    asked = _parser().parse_args(arguments)
    try:
        kernels = _asked(asked.kernels)
        if not (asked.helion / "examples").is_dir():
            raise KernelError(
                "there is no folder `examples`",
                where=f"--helion={asked.helion}",
                allowed="a checkout of github.com/pytorch/helion",
            )
        machine_room.require(target(asked.target))
    except KernelError as error:
        print(f"autotuners: {error}", file=sys.stderr)
        return 2
    if asked.part:
        return PARTS[asked.part](asked, kernels[0])
    rows = read(asked.out)["rows"]
    done = {row["kernel"] for row in rows if "reason" not in row}
    for kernel in kernels:
        if kernel not in done:
            put(rows, _apart(asked, kernel))
            save(asked.out, {**_head(asked), "rows": rows})
            print(line(next(r for r in rows if r["kernel"] == kernel)), file=sys.stderr, flush=True)
    return int(any("reason" in row for row in rows))


def _asked(names: str) -> list[str]:
    wanted = [n for n in names.split(",") if n] or list(SIZES)
    if unknown := [n for n in wanted if n not in SIZES]:
        raise KernelError(f"there is no kernel `{unknown[0]}`", allowed=", ".join(SIZES))
    return wanted


def _head(asked: argparse.Namespace) -> Table:
    return {
        "command": f"python3 -m benchmarks.autotuners --target={asked.target} --helion=DIR "
        f"--seconds={asked.seconds:g} --out=FILE",
        "date": date.today().isoformat(),
        **machine_room.facts(),
    }


def _apart(asked: argparse.Namespace, kernel: str) -> Table:
    """Returns the row of a kernel, with a reason if one of its processes ends without a result."""
    with tempfile.TemporaryDirectory(prefix="autotuners-") as place:
        tuning = asked.seconds * most_forms(kernel)
        for part, seconds in (("search", asked.seconds), ("race", tuning)):
            if why := _ended(asked, kernel, part, Path(place), seconds + GRACE):
                return {**_row(kernel), "reason": why}
        return {**_row(kernel), **read_json(Path(place) / "row.json")}


def _ended(asked: argparse.Namespace, kernel: str, part: str, place: Path, limit: float) -> str:
    """Runs a part in its own process. Returns why there is no result; empty if there is one."""
    words = [f"--target={asked.target}", f"--helion={asked.helion}", f"--out={place}"]
    words += [f"--kernels={kernel}", f"--seconds={asked.seconds}", f"--part={part}"]
    # Earlier results of Helion or of ours would shorten a search.
    kept = dict.fromkeys(
        ("HELION_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "XDG_DATA_HOME"), str(place)
    )
    command = [sys.executable, "-m", "benchmarks.autotuners", *words]
    around = {**os.environ, **kept, **helion_settings(asked.seconds)}
    try:
        done = subprocess.run(command, cwd=ROOT, env=around, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return f"{part}: no end after {limit:g} s"
    return f"{part}: it ended with {done.returncode}" if done.returncode else ""


def helion_settings(seconds: float) -> dict[str, str]:
    """Returns Helion's settings as environment variables. All others keep their defaults.

    seconds: of its search.
    """
    compiling = max(LEAST_COMPILE, COMPILE_SHARE * seconds)
    return {
        "HELION_AUTOTUNE_BUDGET_SECONDS": f"{seconds:g}",
        "HELION_AUTOTUNE_COMPILE_TIMEOUT": f"{compiling:.0f}",
        # An epilogue is a nested function, which cannot be sent to a process.
        "HELION_AUTOTUNE_BENCHMARK_SUBPROCESS": "0",
        "HELION_AUTOTUNE_PROGRESS_BAR": "0",
    }


def _row(kernel: str) -> Table:
    output = workload(kernel).spec.outputs[0]
    return {"kernel": kernel, "dtype": output.dtype, "shape": SIZES[kernel]}


def _search(asked: argparse.Namespace, kernel: str) -> int:
    """Searches, and writes the result into the folder `--out`."""
    began = time.monotonic()
    inputs = draw(workload(kernel).spec, SIZES[kernel], "cuda", 1)
    found = speciate.evolve(
        LIBRARY / f"{kernel}.kir",
        tuple(inputs),
        target=asked.target,
        seconds=asked.seconds,
        store=str(asked.out / "runs.db"),
        records=asked.out / "records",
        quiet=True,
    )
    found.save(asked.out / OURS)
    told = {"wall_s": round(time.monotonic() - began, 1), "digest": text_digest(found.source)}
    told["phases_s"] = dict(found.phases)
    (asked.out / TOLD).write_text(json.dumps(told), encoding="utf-8")
    return 0


def _race(asked: argparse.Namespace, kernel: str) -> int:
    """Runs Helion's tuner, and writes the row of both sides into the folder `--out`."""
    try:
        with torch.no_grad():
            row = _raced(asked, kernel, workload(kernel))
    except Exception as error:  # From a compiler or a kernel.
        row = {"reason": f"{type(error).__name__}: {error}"[:MOST_WORDS]}
    (asked.out / "row.json").write_text(json.dumps(row), encoding="utf-8")
    return 0


def read_json(file: Path) -> Table:
    """Reads the file that a part wrote."""
    found: Table = json.loads(file.read_text(encoding="utf-8"))
    return found


def workload(kernel: str) -> Workload:
    """Returns a library kernel."""
    return parse_workload((LIBRARY / f"{kernel}.kir").read_text(encoding="utf-8"), kernel)


def _raced(asked: argparse.Namespace, kernel: str, work: Workload) -> Table:
    """Races both sides and returns the row."""
    sizes, spec = SIZES[kernel], work.spec
    sets = [draw(spec, sizes, "cuda", seed) for seed in range(1, SETS + 1)]
    settings = {n: v for n, v in os.environ.items() if n.startswith("HELION_AUTOTUNE_")}
    row: Table = {"helion": {}, "helion_version": version("helion"), "helion_settings": settings}
    tuned: dict[str, TimedCall] = {}
    for name, form in helion_forms(kernel, asked.helion).items():
        began = time.monotonic()
        try:
            form(*sets[0])  # The first call tunes.
            torch.cuda.synchronize()
            tuned[name] = form
            told: Table = {"tuning_s": round(time.monotonic() - began, 1)}
        except Exception as error:  # From Helion's compiler.
            told = {"reason": f"{type(error).__name__}: {error}"[:MOST_WORDS]}
        row["helion"][name] = told
    row["ours"] = read_json(asked.out / TOLD)
    ours = speciate.load(asked.out / OURS)
    wrong = _fault(kernel, work, ours)
    row["ours"] |= {"correct": not wrong} | ({"reason": wrong} if wrong else {})
    for name, form in tuned.items():
        wrong = _fault(kernel, work, form)
        row["helion"][name] |= {"correct": not wrong} | ({"reason": wrong} if wrong else {})
    device = CudaDevice()
    row["ours"] |= asdict(steadiest(partial(measure, ours, sets, device)))
    for name, form in tuned.items():
        timed = partial(measure, form, sets, device)
        row["helion"][name] |= asdict(steadiest(timed))
    return row | compared(row)


def helion_forms(kernel: str, helion: Path) -> dict[str, Form]:
    """Returns the forms of a kernel in Helion's examples by function name. Each is called with our
    inputs."""
    file, names = FORMS[kernel]
    made = _example(helion, file)
    return {name: _of_our_inputs(kernel, getattr(made, name)) for name in names}


def _of_our_inputs(kernel: str, form: Callable[..., Any]) -> Form:
    """Adapts a form to the inputs of our kernel. It returns only the output."""
    if kernel == "layer_norm":
        return lambda x, g, b: form(x, [x.shape[1]], g, b)[0]
    if kernel != "matmul_bias_gelu":
        return form

    def matmul(x: Tensor, w: Tensor, bias: Tensor) -> Tensor:
        def epilogue(acc: Tensor, tile: Any) -> Tensor:
            return torch.nn.functional.gelu(acc + bias[tile[1]].to(torch.float32)).to(x.dtype)

        made: Tensor = form(x, w, epilogue)
        return made

    return matmul


def most_forms(kernel: str) -> int:
    """Returns the number of a kernel's forms that Helion tunes."""
    return len(FORMS[kernel][1])


def _example(helion: Path, name: str) -> ModuleType:
    """Loads a file of Helion's examples as a module."""
    file = helion / "examples" / f"{name}.py"
    found = importlib.util.spec_from_file_location(f"helion_example_{name}", file)
    if found is None or found.loader is None:
        raise KernelError("it is no module of Python", where=str(file))
    made = importlib.util.module_from_spec(found)
    found.loader.exec_module(made)
    return made


def _fault(kernel: str, work: Workload, call: TimedCall) -> str:
    """Returns why a call's result is wrong on held-out inputs. Empty if it is correct."""
    baseline, spec = BASELINES[kernel], work.spec
    inputs = draw(spec, SIZES[kernel], "cuda", int.from_bytes(os.urandom(4), "little"))
    got = call(*inputs)
    machine_room.full_precision()
    return judge(spec, got, baseline.call(*inputs), exact(baseline, spec, inputs)).reason


def compared(row: Mapping[str, Any]) -> Table:
    """Returns Helion's fastest correct form, and the ratio of its time to ours.

    If either side has no correct result, it returns a reason instead.
    """
    theirs = {n: told["us"] for n, told in row["helion"].items() if told.get("correct")}
    if not row["ours"].get("correct"):
        return {"reason": f"ours: {row['ours'].get('reason', 'not timed')}"}
    if not theirs:
        reasons = "; ".join(f"{n}: {t.get('reason', '')}" for n, t in row["helion"].items())
        return {"reason": f"Helion has no correct form: {reasons}"[:MOST_WORDS]}
    best = min(theirs, key=theirs.__getitem__)
    us = row["ours"]["us"]
    return {"us": us, "helion_us": theirs[best], "form": best, "speedup": theirs[best] / us}


def line(row: Mapping[str, Any]) -> str:
    """Formats a row as a progress line."""
    what = f"{row['kernel']} {shape_key(row['shape'])}"
    if "reason" in row:
        return f"{what}: FAILED, {row['reason']}"
    return (
        f"{what}: {row['us']:.1f} us, Helion's {row['form']} {row['helion_us']:.1f} us, "
        f"{row['speedup']:.2f} times as fast"
    )


PARTS = {"search": _search, "race": _race}


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="benchmarks.autotuners",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--target", required=True, help="the target of this machine's device")
    made.add_argument(
        "--helion", required=True, type=Path, help="a checkout of Helion's repository"
    )
    made.add_argument("--out", required=True, type=Path, help="the result file")
    made.add_argument("--kernels", default="", help="kernels, separated by commas (default: all)")
    made.add_argument("--seconds", type=float, default=60, help="seconds of search for each side")
    # The part that a child process runs.
    made.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    return made


if __name__ == "__main__":
    sys.exit(main())
