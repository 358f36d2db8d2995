"""KernelBench's own verdicts: writes `ModelNew` files, and runs its harness to judge and time them.

Each problem is judged by `eval_kernel_against_ref` of a checkout of KernelBench, in its own
process: with PyTorch's default flags, and with TF32 off for the reference. The harness decides
correctness and measures both sides. Nothing of it is copied or changed. This runs foreign code.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any

from backends.registry import backend_for, target
from benchmarks import device as machine_room
from benchmarks.kernelbench.contest import machine_facts
from benchmarks.kernelbench.judged import AS_IS, MODES, TF32_OFF
from benchmarks.kernelbench.model_new import ModelNewJob, write_model_new
from benchmarks.kernelbench.prepared import F32, TF32
from benchmarks.kernelbench.problems import ProblemFile, entries
from benchmarks.kernelbench.rows import Row, put
from benchmarks.results import over, read, save
from frontends.kernelbench.apart import apart
from ir.errors import KernelError
from search.cli.invocation import Interrupt

WRITE_SECONDS = 900.0  # Limit of writing a file, in seconds.
AHEAD = 2  # Processes that run their imports while a problem is judged.
EVAL = Path("src") / "kernelbench" / "eval.py"
EXAMPLES = """
examples:
  python3 -m benchmarks.kernelbench.harness --kernelbench=KernelBench --target=h200 \\
      --out=benchmarks/results/h200/kernelbench_harness.json --level=1 --only=1-20
  python3 -m benchmarks.kernelbench.harness --kernelbench=KernelBench --target=h200 --out=r.json \\
      --until=write --work=work     # without the device
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command.

    Returns exit code 2 for wrong usage, 1 if a problem failed or is left, 130 if it was
    interrupted.
    """
    asked = _parser().parse_args(arguments)
    try:
        _require_checkout(asked.kernelbench)
        problems = asked.kernelbench / "KernelBench"
        levels = asked.level or (1, 2, 3)
        chosen = [e for n in levels for e in entries(problems, n, asked.only)]
        machine = target(asked.target)
        if backend_for(machine).manifest.extension != "py":
            raise KernelError(
                f"kernels for `{machine.name}` are {backend_for(machine).manifest.language}",
                where="--target",
                allowed="a target whose sources Python imports",
            )
        if asked.until == "judge" and not asked.rehearse:
            hint = "--until=write does what needs no device"
            machine_room.require(machine, hint)
    except KernelError as error:
        print(f"harness: {error}", file=sys.stderr)
        return 2
    asked.work.mkdir(parents=True, exist_ok=True)
    return _Harness(asked).all(chosen)


def _require_checkout(folder: Path) -> None:
    if not (folder / EVAL).is_file():
        raise KernelError(
            f"`{folder}` is no checkout of KernelBench: it has no {EVAL}",
            where="--kernelbench",
            hint="git clone https://github.com/ScalingIntelligence/KernelBench",
        )


class Judge:
    """A process that judges one problem. It runs its imports, then waits for the device.

    new: the file of `ModelNew`. The verdicts and the process's output are next to it.
    """

    def __init__(self, kernelbench: Path, problem: Path, new: Path):
        self.said, self.log = new.with_suffix(".verdict.json"), new.with_suffix(".log")
        self.said.unlink(missing_ok=True)
        command = [sys.executable, "-m", f"{__package__}.judged", "--wait"]
        command += [f"--kernelbench={kernelbench.resolve()}", f"--said={self.said.resolve()}"]
        command += [f"--problem={problem.resolve()}", f"--new={new.resolve()}"]
        around = {**os.environ, "PYTHONPATH": os.pathsep.join(p or "." for p in sys.path)}
        with self.log.open("wb") as file:
            self.process = subprocess.Popen(
                command,
                env=around,
                stdin=subprocess.PIPE,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )

    def verdicts(self, seconds: float) -> Row:
        """Starts the judgement with a limit in seconds. Returns what is known of the problem after
        it."""
        try:
            self.process.communicate(b"\n", timeout=seconds)
            code = self.process.returncode
            why = f"its process ended with {code}" if code else ""
        except subprocess.TimeoutExpired:
            why = f"it took longer than {seconds:g} s"
        finally:
            self.end()
        found: Row = json.loads(self.said.read_text("utf-8")) if self.said.is_file() else {}
        if why:
            last = self.log.read_text("utf-8", "replace").strip().splitlines()[-1:]
            found["reason"] = f"{why}: {''.join(last)}"[:400]
        return found

    def end(self) -> None:
        """Ends the process, and what it started."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        if self.process.stdin:
            with suppress(BrokenPipeError):
                self.process.stdin.close()


class _Harness:
    """One run of the command."""

    def __init__(self, asked: argparse.Namespace):
        self.asked = asked
        self.rows: list[Row] = read(asked.out)["rows"] if asked.until == "judge" else []
        self.start, self.lock = time.monotonic(), threading.Lock()
        self.facts: dict[str, Any] = {}
        # Processes that wait for the device, by the problem's file.
        self.ahead: dict[Path, Judge] = {}
        if asked.until == "judge":
            self.facts = apart(machine_facts, asked.rehearse, gigabytes=None)

    def all(self, chosen: Sequence[ProblemFile]) -> int:
        """Writes files ahead of the device, several in parallel, and judges problems one at a time.

        The processes of the next problems run their imports meanwhile.
        """
        done = {(r["level"], r["problem"]) for r in self.rows if "reason" not in r}
        todo = [e for e in chosen if self.asked.again or (e.level, e.name) not in done]
        finished = 0
        with Interrupt(), ThreadPoolExecutor(self.asked.workers) as pool:
            written = [(entry, pool.submit(self.written, entry)) for entry in todo]
            try:
                for n, (entry, file) in enumerate(written):
                    if self.late():
                        break
                    for other, its in written[n + 1 : n + 1 + AHEAD]:
                        self.begin(other, its)
                    finished += self.one(entry, file)
            except KeyboardInterrupt:
                pool.shutdown(wait=False, cancel_futures=True)
                print("stopped; run the same command to continue", file=sys.stderr, flush=True)
                return 130
            finally:
                for waiting in self.ahead.values():
                    waiting.end()
            pool.shutdown(wait=True, cancel_futures=True)
        print(f"{finished} of {len(todo)} done", file=sys.stderr)
        right = all(r.get(AS_IS, {}).get("correctness") for r in self.rows)
        return int(finished < len(todo) or not right)

    def late(self) -> bool:
        return time.monotonic() - self.start > self.asked.seconds

    def written(self, entry: ProblemFile) -> Row:
        """Writes a problem's file, unless it exists. Returns what is known of it, or the reason why
        there is none."""
        file = self.file(entry)
        facts = file.with_suffix(".json")
        if facts.is_file():
            return json.loads(facts.read_text("utf-8"))
        if self.late():
            return {"reason": "there was no time left"}
        file.parent.mkdir(parents=True, exist_ok=True)
        records = self.records(entry)
        asked = self.asked
        products = TF32 if asked.tf32 else F32
        job = ModelNewJob(entry.path, asked.target, asked.reduced, file, products, records)
        try:
            found = apart(write_model_new, job, seconds=WRITE_SECONDS, gigabytes=64.0)
        except KernelError as error:
            return {"reason": f"no file: {error}"[:400]}
        facts.write_text(json.dumps(found), encoding="utf-8")
        return found

    def begin(self, entry: ProblemFile, written: Future[Row]) -> None:
        """Starts the process of a problem with a file, ahead of its judgement."""
        known = entry.path in self.ahead or self.asked.until == "write" or not written.done()
        if not known and "reason" not in written.result():
            self.ahead[entry.path] = self.judge(entry)

    def one(self, entry: ProblemFile, written: Future[Row]) -> bool:
        """Judges a problem, and writes its row. Returns False if no time is left for it."""
        row = {
            "level": entry.level,
            "problem": entry.name,
            "number": entry.number,
            "degenerate": entry.degenerate,
            **written.result(),
        }
        if "reason" not in row and self.asked.until == "write":
            self.say(f"{entry.name}: {row['kernels']} kernels")
            return True
        if "reason" not in row:
            judge = self.ahead.pop(entry.path, None) or self.judge(entry)
            row |= judge.verdicts(self.asked.problem_seconds)
        if self.asked.until == "judge":
            put(self.rows, row)
            self.save()
        self.say(line(row))
        return True

    def judge(self, entry: ProblemFile) -> Judge:
        return Judge(self.asked.kernelbench, entry.path, self.file(entry))

    def file(self, entry: ProblemFile) -> Path:
        return self.asked.work / f"level{entry.level}" / f"{entry.name}.py"

    def records(self, entry: ProblemFile) -> Path | None:
        """Returns the records of a search for the problem (`race --seconds-each`), if there are
        any."""
        if self.asked.searched is None:
            return None
        folder = self.asked.searched / "search" / f"level{entry.level}" / entry.name / "records"
        return folder if folder.is_dir() else None

    def save(self) -> None:
        with self.lock:
            write(self.asked.out, self.head(), self.rows)

    def head(self) -> dict[str, Any]:
        asked = self.asked
        options = "".join(f" --{n}" for n in ("reduced", "tf32", "rehearse") if getattr(asked, n))
        return {
            "command": "python3 -m benchmarks.kernelbench.harness --kernelbench=DIR "
            f"--target={asked.target} --out=FILE{options}",
            "date": date.today().isoformat(),
            "suite": "kernelbench_harness",
            "harness": commit(asked.kernelbench),
            **self.facts,
        }

    def say(self, text: str) -> None:
        print(f"{time.monotonic() - self.start:6.1f} s  {text}", file=sys.stderr, flush=True)


def write(file: Path, head: Mapping[str, Any], rows: Sequence[Row]) -> None:
    """Writes a result file atomically, with rows in the order of their problems."""
    ordered = sorted(rows, key=lambda r: (r["level"], r["number"]))
    save(file, {**head, "summary": summary(ordered), "rows": ordered})


def commit(folder: Path) -> str:
    """Returns the version of the checkout: its commit, else the digest of its judge."""
    from ir.digest import text_digest

    found = subprocess.run(
        ["git", "-C", str(folder), "rev-parse", "HEAD"], capture_output=True, text=True
    )
    if found.returncode == 0 and (folder / ".git").exists():
        return f"commit {found.stdout.strip()}"
    return f"eval.py {text_digest((folder / EVAL).read_text('utf-8'))}"


def summary(rows: Sequence[Row]) -> dict[str, Any]:
    """Summarizes the verdicts of each level, and of all."""
    levels = sorted({r["level"] for r in rows})
    groups = {f"level {n}": [r for r in rows if r["level"] == n] for n in levels}
    return {name: _summed(group) for name, group in {**groups, "all": list(rows)}.items()}


def _summed(rows: Sequence[Row]) -> dict[str, Any]:
    return {"problems": len(rows), **{mode: _mode(rows, mode) for mode in MODES}}


def _mode(rows: Sequence[Row], mode: str) -> dict[str, Any]:
    found = [r[mode] for r in rows if mode in r]
    right = [f for f in found if f.get("correctness")]
    times = [(f["ref_runtime"], f["runtime"]) for f in right if f.get("runtime", -1.0) > 0.0]
    return {
        "judged": len(found),
        "compiled": sum(bool(f.get("compiled")) for f in found),
        "correct": len(right),
        "speedup": over([theirs / ours for theirs, ours in times]),
    }


def line(row: Row) -> str:
    """Formats a row as a progress line."""
    name = f"level {row['level']} {row['problem']}"
    parts = [f"{mode}: {_verdict(row[mode])}" for mode in (AS_IS, TF32_OFF) if mode in row]
    return f"{name}: {'; '.join([*parts, *([row['reason']] if 'reason' in row else [])])}"


def _verdict(found: Mapping[str, Any]) -> str:
    if not found.get("correctness"):
        return f"WRONG: {found.get('why', 'no reason is given')}"[:200]
    return f"right, {found['runtime']:.4g} against {found['ref_runtime']:.4g} {found['unit']}"


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="kernelbench.harness",
        description=__doc__.splitlines()[0],
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--kernelbench", required=True, type=Path, help="a checkout of KernelBench")
    made.add_argument("--target", required=True, help="the target")
    made.add_argument("--out", required=True, type=Path, help="the result file")
    made.add_argument(
        "--level", type=int, action="append", help="a level; repeatable (default: 1 to 3)"
    )
    made.add_argument("--only", default="", help="numbers of problems, such as 1,5-9")
    made.add_argument("--searched", type=Path, help="the --work of a race that searched")
    made.add_argument("--tf32", action="store_true", help="allow convolutions to round to tf32")
    made.add_argument("--reduced", action="store_true", help="use sizes that can be simulated")
    made.add_argument("--until", choices=("write", "judge"), default="judge")
    made.add_argument("--rehearse", action="store_true", help="for a checkout that needs no device")
    made.add_argument(
        "--seconds", type=float, default=1e9, help="start nothing after this number of seconds"
    )
    made.add_argument(
        "--problem-seconds", type=float, default=180, help="limit for one problem, in seconds"
    )
    cores = os.cpu_count() or 1
    made.add_argument(
        "--workers", type=int, default=max(1, cores - 4), help="processes that write files"
    )
    made.add_argument("--again", action="store_true", help="also judge problems that have a row")
    made.add_argument(
        "--work",
        type=Path,
        default=Path(tempfile.gettempdir()) / "kernelbench_harness",
        help="the folder of `ModelNew` files",
    )
    return made


if __name__ == "__main__":
    sys.exit(main())
