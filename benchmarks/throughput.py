"""Measures how many candidates a search evaluates per second, and where their time goes.

Each library kernel is searched for by its own command, each module by `speciate.evolve`, as users
do. The counts are those of the outcomes in the store, with the seconds of each stage. During a
search the driver reports how long kernels were running. A row is written when its search ends.
`per_second` is relative to the search's working time, which begins when workers are ready; `wall_s`
is the time of the whole command. `alone_share` is the part of the working time in which a candidate
had the device exclusively. With several GPUs (`--gpus`) each has one search at a time, with its own
workers.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from queue import SimpleQueue
from statistics import fmean

from backends.gpu.device.nodes import chips, first_seen
from backends.gpu.device.nvml import utilization
from benchmarks import device as machine_room
from benchmarks.entrant import ROOT
from benchmarks.results import Table, save
from frontends.kernelbench.apart import apart
from ir.errors import KernelError
from ir.workload import LIBRARY
from search.core.evaluation import Evaluated, Evaluation, Failure
from search.core.stored import StoredRun
from search.loop.retold import fastest, told
from search.store.store import Store

STARTER = tuple(sorted(file.stem for file in LIBRARY.glob("*.kir")))
GRACE = 240.0  # Limit of a search beyond its search time, for its start and its end.
VISIBLE = "CUDA_VISIBLE_DEVICES"
SAMPLE = 0.25  # Seconds between two queries of the driver.
WRONG_USE = 2
Words = Callable[[str, argparse.Namespace, Path], list[str]]
MODULE = """
import sys
import speciate
from benchmarks.modules.catalogue import ENTRIES
target, name, seconds, workers, store, records = sys.argv[1:]
made = ENTRIES[name].made(0, "cuda")
speciate.evolve(made.module, made.arguments(1), target=target, seconds=float(seconds),
    workers=int(workers), store=store, records=records, quiet=True)
"""
EXAMPLES = """
examples:
  python3 -m benchmarks.throughput --target=h200 --workers=16 --out=throughput.json
  python3 -m benchmarks.throughput --target=h200 --workers=16 --out=throughput.json \\
      --kernels=softmax --modules=bert_layer --module-seconds=40
  python3 -m benchmarks.throughput --target=h200 --workers=16 --gpus=4 --out=throughput.json
"""


class Busy(threading.Thread):
    """Queries the driver for how long kernels were running, until it exits. Percentages are in
    `seen`.

    gpu: its number, as the driver counts.
    """

    def __init__(self, gpu: int = 0) -> None:
        super().__init__(name="utilization", daemon=True)
        self.gpu = gpu
        self.seen: list[float] = []
        self._over = threading.Event()

    def __enter__(self) -> Busy:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()

    def run(self) -> None:
        while not self._over.wait(SAMPLE):
            now = utilization(self.gpu)
            if now is None:
                return
            self.seen.append(now)


def kernel_words(kernel: str, asked: argparse.Namespace, store: Path) -> list[str]:
    """Returns the command that searches for a library kernel."""
    return [
        *("-m", "search.evolve", f"--target={asked.target}", f"--kernel={kernel}"),
        *(f"--seconds={asked.seconds:g}", f"--workers={asked.workers}", f"--seed={asked.seed}"),
        *("--no-promote", f"--store={store}", "--json"),
        *(f"--backend={name}" for name in asked.backends.split(",") if name),
    ]


def module_words(module: str, asked: argparse.Namespace, store: Path) -> list[str]:
    """Returns the command that searches for the kernels of a module's call."""
    said = (
        asked.target,
        module,
        asked.module_seconds,
        asked.workers,
        store,
        store.parent / "records",
    )
    return ["-c", MODULE, *map(str, said)]


def gpus(count: int) -> list[int]:
    """Returns the numbers of the GPUs for the searches, among those that this process may use."""
    named = os.environ.get(VISIBLE, "").split(",")
    able = [int(n) for n in named if n.strip().isdigit()] or list(range(max(1, count)))
    if len(able) < count:
        raise KernelError(f"{count} GPUs are asked for", where=VISIBLE, allowed=f"{len(able)}")
    return able[:count]


def row(
    name: str, words: Sequence[str], seconds: float, store: Path, log: Path, gpu: int | None = None
) -> Table:
    """Runs a search and returns its row.

    seconds: of the search.
    log: receives its output.
    gpu: the only one that it sees. None: those that this process sees.
    """
    began = time.monotonic()
    failed = ""
    around = dict(os.environ) if gpu is None else {**os.environ, VISIBLE: str(gpu)}
    number = first_seen() if gpu is None else gpu
    with Busy(number) as busy, log.open("w", encoding="utf-8") as shown:
        command = [sys.executable, *words]
        try:
            done = subprocess.run(
                command,
                cwd=ROOT,
                env=around,
                stdout=shown,
                stderr=shown,
                timeout=seconds + GRACE,
                check=False,
            )
            failed = f"exit code {done.returncode}" if done.returncode else ""
        except subprocess.TimeoutExpired:
            failed = f"no end after {seconds + GRACE:g} s"
    wall = time.monotonic() - began
    runs = runs_of(store)
    if not runs:
        return {"kernel": name, "reason": failed or "nothing is stored"}
    found = {"kernel": name, "wall_s": round(wall, 1), **counted(runs)}
    # The samples during the search: before and after it, nothing uses the device for long.
    most = max(1, round(float(found["seconds"]) / SAMPLE))
    if busy.seen:
        found["device_busy"] = round(fmean(sorted(busy.seen)[-most:]) / 100, 3)
    return found | ({"reason": failed} if failed else {})


def counted(runs: Sequence[StoredRun]) -> Table:
    """Counts the outcomes of some runs, with the mean time of each stage."""
    outcomes: list[Evaluated] = [o for run in runs for o in told(run).values()]
    own = [o for o in outcomes if o.seconds]  # The others have the time of an equal source.
    seconds = sum(run.seconds for run in runs)
    alone = sum(o.seconds.get("alone turns", 0.0) for o in own)
    found: Table = {
        "runs": len(runs),
        "seconds": round(seconds, 2),
        "evaluations": len(outcomes),
        "per_second": round(len(outcomes) / seconds, 2) if seconds else 0.0,
        "correct": sum(isinstance(o, Evaluation) for o in outcomes),
        "slow": sum(isinstance(o, Failure) and o.slow for o in outcomes),
        "failed": sum(isinstance(o, Failure) and not o.slow for o in outcomes),
        "same_source": sum(run.same_source for run in runs),
        "alone_share": round(alone / seconds, 3) if seconds else 0.0,
        "seconds_each": {
            "correct": _means(o for o in own if isinstance(o, Evaluation)),
            "slow": _means(o for o in own if isinstance(o, Failure) and o.slow),
            "failed": _means(o for o in own if isinstance(o, Failure) and not o.slow),
        },
    }
    best = [each[1].us for run in runs if (each := fastest(told(run))) is not None]
    if best and len(runs) == 1:
        found["best_us"] = best[0]
    return found


def _means(outcomes: Iterable[Evaluated]) -> dict[str, float]:
    """Returns the mean seconds of each stage."""
    every = list(outcomes)
    names = dict.fromkeys(name for o in every for name in o.seconds)
    return {n: round(sum(o.seconds.get(n, 0.0) for o in every) / len(every), 4) for n in names}


def runs_of(file: Path) -> list[StoredRun]:
    """Returns the runs of a store; empty if there is no file."""
    if not file.is_file():
        return []
    store = Store(str(file))
    try:
        return [store.load(run) for run in store.runs()]
    finally:
        store.close()


def _facts() -> Table:
    """Returns the facts about the machine; empty without a GPU.

    A child process asks, because a process that opens a device holds a part of its memory.
    """
    return apart(machine_room.facts, gigabytes=None) if chips() else {}


def line(found: Mapping[str, object]) -> str:
    """Formats a row as a progress line."""
    if "evaluations" not in found:
        return f"{found['kernel']}: FAILED, {found['reason']}"
    return (
        f"{found['kernel']}: {found['evaluations']} in {found['seconds']} s, {found['per_second']} a "
        f"second ({found['slow']} slow, {found['failed']} failed), device busy "
        f"{found.get('device_busy', 'not known')}"
    )


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="benchmarks.throughput",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--target", required=True, help="the target of the searches")
    made.add_argument("--out", required=True, type=Path, help="the result file")
    made.add_argument("--kernels", default=",".join(STARTER), help="kernels, separated by commas")
    made.add_argument(
        "--backends", default="", help="backends, separated by commas (default: the target's own)"
    )
    made.add_argument(
        "--seconds", type=float, default=25, help="seconds of the search for a kernel"
    )
    made.add_argument(
        "--modules", default="", help="modules of benchmarks.modules, separated by commas"
    )
    made.add_argument(
        "--module-seconds", type=float, default=40, help="seconds of the search for a module"
    )
    made.add_argument("--workers", type=int, required=True, help="candidates evaluated in parallel")
    made.add_argument("--gpus", type=int, default=0, help="searches in parallel, each with one GPU")
    made.add_argument("--seed", type=int, default=1)
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command. Returns exit code 2 for wrong usage, 1 if a search found nothing."""
    asked = _parser().parse_args(arguments)
    out = asked.out.resolve()
    folder = out.parent / out.stem
    folder.mkdir(parents=True, exist_ok=True)
    head = {
        "command": " ".join(["python3 -m benchmarks.throughput", *(arguments or sys.argv[1:])]),
        "date": date.today().isoformat(),
        "target": asked.target,
        "workers": asked.workers,
        **_facts(),
    }
    searches: list[tuple[str, float, Words]]
    searches = [(n, asked.seconds, kernel_words) for n in asked.kernels.split(",") if n]
    searches += [(n, asked.module_seconds, module_words) for n in asked.modules.split(",") if n]
    for name, _, _ in searches:
        if (folder / f"{name}.db").exists():
            raise KernelError(
                f"{name}.db is there: a search would go on from it", hint="name another file"
            )
    order = [name for name, _, _ in searches]
    rows: dict[str, Table] = {}
    lock, free = threading.Lock(), SimpleQueue[int | None]()
    for gpu in gpus(asked.gpus) if asked.gpus else [None]:
        free.put(gpu)

    def one(search: tuple[str, float, Words]) -> None:
        name, seconds, words = search
        store, gpu = folder / f"{name}.db", free.get()
        made = row(name, words(name, asked, store), seconds, store, folder / f"{name}.log", gpu)
        free.put(gpu)
        with lock:
            rows[name] = made
            save(out, {**head, "rows": [rows[n] for n in order if n in rows]})
            print(line(made), file=sys.stderr, flush=True)

    with ThreadPoolExecutor(max(1, asked.gpus)) as pool:
        list(pool.map(one, searches))
    return int(any("reason" in each for each in rows.values()))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KernelError as error:
        print(f"throughput: {error}", file=sys.stderr)
        sys.exit(WRONG_USE)
