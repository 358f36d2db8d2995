"""Judges any solution of a KernelBench-style problem.

    bazel run //benchmarks:judge -- --problem P.py --solution S.py
    python3 -m benchmarks.judge --problem P.py --solution S.py --json

P.py defines `Model`, `get_inputs` and `get_init_inputs`, S.py defines `ModelNew`. The problem
defines the correct result and runs in the judge's process. The solution is foreign code and runs
in a sandbox. A secret determines inputs and shapes. The report contains it, and `--secret` repeats
them.

Exit codes: 0 accepted, 1 refused, 2 bad input.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import torch

from benchmarks.foreign.judging import AT_MOST, Options, Report, digests, judged_solution
from frontends.kernelbench.problem import Problem
from ir.errors import KernelError

ACCEPTED, REFUSED, BAD_INPUT = 0, 1, 2


def main(argv: list[str] | None = None) -> int:
    """Runs the command."""
    options = _parser().parse_args(argv)
    os.chdir(os.environ.get("BUILD_WORKING_DIRECTORY", "."))
    try:
        problem, source = Problem.read(options.problem), _text(options.solution)
        # Output of the problem must not mix with the answer.
        with contextlib.redirect_stdout(sys.stderr):
            report = judged_solution(problem, source, _options(options))
    except KernelError as error:
        print(_told_bad(error, options.json))
        return BAD_INPUT
    table = report.table() | {"versions": _versions(), "sha256": dict(digests(problem, source))}
    print(json.dumps(table, indent=1) if options.json else told(report))
    return ACCEPTED if report.accepted else REFUSED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="judge", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--problem", required=True, metavar="FILE.py", help="a file with Model")
    parser.add_argument("--solution", required=True, metavar="FILE.py", help="a file with ModelNew")
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    parser.add_argument(
        "--secret",
        default="",
        metavar="TEXT",
        help="repeat the draws of the run that reported this secret",
    )
    parser.add_argument(
        "--own", action="store_true", help="refuse solutions that launch no kernel of their own"
    )
    parser.add_argument(
        "--listed-shape", action="store_true", help="compare only at the problem's own sizes"
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=60.0,
        metavar="S",
        help="limit of each answer of the solution (default: %(default)g)",
    )
    parser.add_argument(
        "--memory",
        type=float,
        default=8.0,
        metavar="GIB",
        help="memory limit of the solution's process if no GPU is used (default: %(default)g)",
    )
    parser.add_argument(
        "--device",
        choices=("cpu", "cuda"),
        help="the device of the solution (default: the GPU if there is one)",
    )
    return parser


def _options(given: argparse.Namespace) -> Options:
    for name in ("seconds", "memory"):
        if not 0 < getattr(given, name) < float("inf"):
            raise KernelError(
                f"it is {getattr(given, name)}", where=f"--{name}", allowed="a positive number"
            )
    return Options(
        secret=given.secret,
        seconds=given.seconds,
        memory=int(given.memory * 2**30),
        own=given.own,
        listed=given.listed_shape,
        place=given.device or ("cuda" if torch.cuda.is_available() else "cpu"),
    )


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise KernelError(f"cannot read the solution: {error}", where=path) from error


def _versions() -> dict[str, str]:
    return {"torch": torch.__version__, "python": sys.version.split()[0]}


def _told_bad(error: KernelError, as_json: bool) -> str:
    if not as_json:
        return f"bad input: {error}"
    return json.dumps({"accepted": None, "kind": "bad input", "reason": str(error)}, indent=1)


def told(report: Report) -> str:
    """Returns the report as lines for people."""
    lines = [f"refused ({report.kind}): {report.reason}" if report.reason else "accepted"]
    if report.calls:
        worst = max(report.calls, key=lambda c: c["rel_err"])
        lines.append(
            f"  {len(report.calls)} calls compared with float64, at {'; '.join(report.shapes) or 'none'}; "
            f"largest relative error {worst['rel_err']:.2g} (PyTorch's own {worst['reference_rel_err']:.2g})"
        )
    lines += [f"  not drawn: {why}" for why in report.skipped]
    kernels = ", ".join(report.own_kernels) or "none (no own kernel)"
    lines.append(f"  correct by: {report.correct_by} ({report.device}); own kernels: {kernels}")
    lines.append(f"  time: {_time(report)}")
    lines += [f"  sandbox lacks {k}: {v}" for k, v in report.sandbox.items() if v.startswith("no")]
    lines.append(f"  repeat with --secret {report.secret}")
    return "\n".join(lines)


def _time(report: Report) -> str:
    found: dict[str, Any] = report.time
    if not found:
        return f"no time{': ' if report.no_time else ''}{report.no_time}"
    if report.time_kind == AT_MOST:
        return (
            f"{found['us']:.1f} us at most by the judge's clock, within {found['within_us']:.1f} us "
            f"(the reference {found['reference_us']:.1f}, a call of nothing {found['nothing_us']:.1f}); "
            f"a speed-up of {found['speedup_at_least']:.2f} at least, {found['speedup']:.2f} if it serves "
            "calls as it should"
        )
    return f"{found['us']:.1f} us measured ({found['wall_us']:.1f} us by the judge's clock)"


if __name__ == "__main__":
    raise SystemExit(main())
