"""Judges rows of the starter table three times, and reports the spread of the speed-ups.

Each time is a separate run of `benchmarks.starter`, with its own builds and draws. Each figure of a
run is a mean over processes, because a chain of short kernels takes up to 5% more in one process
than in another. The rows are divided among the GPUs of the machine. A row is always judged on the
same GPU, which nothing else uses meanwhile. The second and third runs find the output of
`torch.compile` in the cache of the first.

The first run may take half of the time. The others judge the rows that it completed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks import repeats
from benchmarks.entrant import ROOT
from benchmarks.results import Table, put, read, row_key, save
from benchmarks.shapes import Row
from benchmarks.starter import asked_baselines, asked_rows
from ir.errors import KernelError

RUNS = 3
PROCESSES = 8
DTYPES = "f16,bf16,i32"  # Dtypes of production models.
FIRST_SHARE = 0.5  # Share of the time.
EXAMPLES = """
examples:
  python3 -m benchmarks.judged_thrice --target=h200 --gpus=4 --seconds=300 --work=work \\
      --out=benchmarks/results/h200/judged_thrice.json
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command. Returns exit code 2 for wrong usage, 1 if the spread of a row exceeds
    2%."""
    asked = _parser().parse_args(arguments)
    try:
        for name in ("gpus", "processes"):
            if getattr(asked, name) < 1:
                word = f"it is {getattr(asked, name)}"
                raise KernelError(word, where=f"--{name}", allowed="1 or more")
        rows = asked_rows(asked.kernels, asked.dtypes)
        parts = shared_out(rows, asked.gpus, asked.baselines)
        with ThreadPoolExecutor(len(parts)) as pool:
            jobs = [pool.submit(judged, asked, n, part) for n, part in enumerate(parts)]
            found = [job.result() for job in jobs]
        return written(asked, found, rows)
    except KernelError as error:
        print(f"judged_thrice: {error}", file=sys.stderr)
        return 2


def shared_out(rows: Sequence[Row], gpus: int, baselines: str) -> list[list[Row]]:
    """Divides the rows among the GPUs, with about as many contenders for each.

    The rows with the most contenders are last, because the time may end before.
    """
    cost = {row.key: 1 + len(asked_baselines(row.kernel, baselines)) for row in rows}
    parts: list[list[Row]] = [[] for _ in range(min(gpus, len(rows)))]
    for row in sorted(rows, key=lambda r: -cost[r.key]):
        min(parts, key=lambda part: sum(cost[r.key] for r in part)).append(row)
    return [part[::-1] for part in parts]


def judged(asked: argparse.Namespace, gpu: int, part: Sequence[Row]) -> list[Table]:
    """Returns the result table of each run of a GPU's rows. There are fewer if the time ends."""
    end = time.monotonic() + asked.seconds
    found: list[Table] = []
    keys = [row.key for row in part]
    for number in range(RUNS):
        left = end - time.monotonic()
        if left <= 0 or not keys:
            break
        share = FIRST_SHARE if number == 0 else 1.0
        out = asked.work / f"gpu_{gpu}_run_{number + 1}.json"
        _run(asked, gpu, keys, share * left, out)
        found.append(read(out))
        done = {row_key(row) for row in found[-1]["rows"]}
        keys = [row.key for row in part if row.key in keys and _key(row) in done]
    return found


def _run(
    asked: argparse.Namespace, gpu: int, keys: Sequence[str], seconds: float, out: Path
) -> None:
    """Starts one run on one GPU. Its output goes to a file next to its result."""
    out.parent.mkdir(parents=True, exist_ok=True)
    words = [f"--target={asked.target}", f"--rows={','.join(keys)}", f"--seconds={seconds:.0f}"]
    words += [f"--out={out}", f"--row-seconds={asked.row_seconds:g}", "--again"]
    words += [f"--baselines={asked.baselines}"] if asked.baselines else []
    words += [f"--schedules={asked.schedules}"] if asked.schedules else []
    words += [f"--processes={asked.processes}"]
    command = [sys.executable, "-m", "benchmarks.starter", *words]
    with out.with_suffix(".log").open("w", encoding="utf-8") as log:
        subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, "CUDA_VISIBLE_DEVICES": str(gpu)},
            stdout=log,
            stderr=log,
            check=False,
        )


def written(
    asked: argparse.Namespace, found: Sequence[Sequence[Table]], rows: Sequence[Row]
) -> int:
    """Merges the GPUs' files of each run, compares the runs and writes the result."""
    files = []
    for number in range(RUNS):
        runs = [each[number] for each in found if len(each) == RUNS]
        if not any(run["rows"] for run in runs):
            raise KernelError(
                f"run {number + 1} of {RUNS} has judged nothing",
                where=str(asked.work),
                hint="the logs there say why; or give it more --seconds",
            )
        files.append(asked.work / f"run_{number + 1}.json")
        save(files[-1], _merged(runs, number))
    _keep_common(files)
    code = repeats.main([f"--out={asked.out}", *map(str, files)])
    made = read(asked.out)
    done = {row_key(row) for row in made["rows"]}
    made["command"] = _command(asked)
    made["gpus"] = asked.gpus
    made["not_reached"] = [row.key for row in rows if _key(row) not in done]
    save(asked.out, made)
    return code


def _merged(runs: Sequence[Table], number: int) -> Table:
    """Merges one run of all GPUs. Raises KernelError if their heads differ."""
    head = {name: value for name, value in runs[0].items() if name not in ("rows", "summary")}
    rows: list[Table] = []
    for run in runs:
        for name in ("machine", "driver", "versions"):
            if run[name] != head[name]:
                raise KernelError(f"GPUs differ in `{name}`: {run[name]} and {head[name]}")
        for row in run["rows"]:
            put(rows, row)
    return head | {"run": number + 1, "rows": rows}


def _keep_common(files: Sequence[Path]) -> None:
    """Keeps the rows that every run has, in one order."""
    runs = [read(file) for file in files]
    common = set.intersection(*({row_key(row) for row in run["rows"]} for run in runs))
    for file, run in zip(files, runs, strict=True):
        kept = sorted(
            (r for r in run["rows"] if row_key(r) in common), key=lambda r: str(row_key(r))
        )
        save(file, {**run, "rows": kept})


def _key(row: Row) -> tuple[object, ...]:
    shape: Mapping[str, int] = dict(row.sizes)
    return row_key({"kernel": row.kernel, "dtype": row.dtype, "shape": shape})


def _command(asked: argparse.Namespace) -> str:
    words = [f"python3 -m benchmarks.judged_thrice --target={asked.target} --gpus={asked.gpus}"]
    given = ("kernels", "dtypes", "baselines", "schedules", "processes")
    words += [f"--{name}={text}" for name in given if (text := getattr(asked, name))]
    return " ".join(words)


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="judged_thrice",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--target", required=True, help="the target of this machine's device")
    made.add_argument("--out", required=True, type=Path, help="the file to write")
    made.add_argument("--work", required=True, type=Path, help="a folder for the files of each run")
    made.add_argument(
        "--gpus", type=int, default=1, help="number of this machine's GPUs to use, from the first"
    )
    made.add_argument(
        "--seconds", type=float, default=540, help="start no row after this number of seconds"
    )
    made.add_argument("--kernels", default="", help="kernels, separated by commas (default: all)")
    made.add_argument("--dtypes", default=DTYPES, help="dtypes, separated by commas")
    made.add_argument("--baselines", default="", help="as for benchmarks.starter")
    made.add_argument(
        "--schedules", default="", help="build with the schedules of this target instead"
    )
    made.add_argument(
        "--processes",
        type=int,
        default=PROCESSES,
        help="processes; each figure is a mean over them",
    )
    made.add_argument(
        "--row-seconds", type=float, default=45, help="limit of compiling one baseline, in seconds"
    )
    return made


if __name__ == "__main__":
    sys.exit(main())
