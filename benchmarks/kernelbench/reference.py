"""Compares problems of KernelBench as equations with PyTorch: which are imported, and are correct.

    python3 -m benchmarks.kernelbench.reference --problems KernelBench --level 1
    python3 -m benchmarks.kernelbench.reference --problems KernelBench --level 3 --whole

At reduced sizes the equations are evaluated with numpy in float64 and compared with the module in
float64. With --whole a problem keeps its sizes, and is only imported, on tensors without values.
Problems are foreign code, so each runs in its own process.
"""

from __future__ import annotations

import argparse
import copy
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_map

from benchmarks.results import save
from frontends.kernelbench.apart import apart
from frontends.kernelbench.problem import Problem
from frontends.kernelbench.scaled import load_of, scaled
from frontends.pytorch.imported import Imported
from frontends.pytorch.module import imported
from frontends.pytorch.redrawn import redrawn
from frontends.pytorch.reference import answer
from ir.errors import KernelError
from ir.verify import facts

LEAST = 1e-6  # A largest value below this is what rounding leaves of a sum that is zero.


def compared(path: str) -> dict[str, Any]:
    """Compares a problem at reduced sizes. Returns its largest error relative to the largest
    value."""
    problem = scaled(Problem.read(path))
    load = load_of(problem)
    start = time.perf_counter()
    made = problem.made()
    call = imported(made.model, made.inputs)
    facts(call.spec)
    seconds = time.perf_counter() - start
    module, inputs = _wide(made.model, made.inputs)
    found = answer(call, *_wide(made.model, made.inputs))
    result, module = _called(module, inputs, random=call.seed is not None)
    worst = _worst(found.result, result)
    for target, value in found.left.items():
        if isinstance(target, str):
            parent, _, name = target.rpartition(".")
            worst = max(worst, _worst(value, getattr(module.get_submodule(parent), name)))
    return _facts(call) | {
        "import_s": round(seconds, 2),
        "evaluate_s": round(time.perf_counter() - start - seconds, 2),
        "elements": load.elements,
        "work": load.work,
        "error": worst,
    }


def _called(module: torch.nn.Module, inputs: Any, random: bool) -> tuple[Any, torch.nn.Module]:
    """Returns the module's result with default dtype float64, and the module after the call.

    random: it uses the random numbers of its equations.
    """
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        return redrawn(module, inputs) if random else (module(*inputs), module)
    finally:
        torch.set_default_dtype(before)


def whole(path: str) -> dict[str, Any]:
    """Imports a problem at its own sizes, without values."""
    made = Problem.read(path).made(fake=True)
    start = time.perf_counter()
    call = imported(made.model, made.inputs)
    return _facts(call) | {"import_s": round(time.perf_counter() - start, 2)}


def _facts(call: Imported) -> dict[str, Any]:
    return {
        "equations": len(call.spec.equations),
        "inputs": len(call.spec.inputs),
        "mutations": len(call.mutations),
        "random": call.seed is not None,
    }


def _wide(module: torch.nn.Module, inputs: tuple[Any, ...]) -> tuple[torch.nn.Module, Any]:
    """Returns copies in float64, including tensors that are plain attributes."""
    module = copy.deepcopy(module).double()
    for part in module.modules():
        for name, value in list(vars(part).items()):
            setattr(part, name, _double(value)) if isinstance(value, torch.Tensor) else None
    return module, tree_map(_double, inputs)


def _double(item: Any) -> Any:
    floats = isinstance(item, torch.Tensor) and item.is_floating_point()
    return item.detach().clone().double() if floats else item


def _worst(ours: Any, theirs: Any) -> float:
    (ours, shape), (theirs, expected) = tree_flatten(ours), tree_flatten(theirs)
    if shape != expected:
        raise KernelError(f"the result is {shape}, not {expected}")
    worst = 0.0
    for a, b in zip(ours, theirs, strict=True):
        if not isinstance(b, torch.Tensor):
            worst = worst if a == b else float("inf")
            continue
        if a.shape != b.shape:
            raise KernelError(f"a result is {tuple(a.shape)}, not {tuple(b.shape)}")
        a, b = a.detach().double(), b.detach().double()
        scale = b[b.isfinite()].abs().max().item() if b.isfinite().any() else 1.0
        off = torch.where((a == b) | (a.isnan() & b.isnan()), 0.0, (a - b).abs())
        worst = max(worst, off.max().item() / max(scale, LEAST) if off.numel() else 0.0)
    return worst


def rows(paths: list[Path], work: Any, seconds: float, tolerance: float) -> Iterator[dict]:
    """Yields a row for each problem, in order. A failed one has its reason."""
    for path in paths:
        row: dict[str, Any] = {"problem": f"{path.parent.name}/{path.stem}"}
        start = time.perf_counter()
        try:
            row |= apart(work, str(path), seconds=seconds)
            row["correct"] = row.get("error", 0.0) <= tolerance
            if not row["correct"]:
                row["reason"] = f"the error is {row['error']:.3g}"
        except KernelError as error:
            row |= {"correct": False, "reason": str(error)}
        row["seconds"] = round(time.perf_counter() - start, 1)
        yield row


def main(argv: list[str] | None = None) -> int:
    """Runs the command. Returns 1 if a problem failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--problems", type=Path, required=True, help="the folder of level1, ...")
    parser.add_argument(
        "--level", type=int, action="append", help="a level; repeatable (default: 1 to 3)"
    )
    parser.add_argument(
        "--only", action="append", default=[], help="only problems whose name contains this text"
    )
    parser.add_argument(
        "--whole", action="store_true", help="use the problems' own sizes, without values"
    )
    parser.add_argument(
        "--seconds", type=float, default=600.0, help="limit for one problem, in seconds"
    )
    parser.add_argument("--tolerance", type=float, default=1e-5)
    parser.add_argument("--out", type=Path, help="a JSON file for the rows")
    options = parser.parse_args(argv)
    paths = [
        p
        for level in options.level or (1, 2, 3)
        for p in sorted((options.problems / f"level{level}").glob("*.py"), key=_number)
    ]
    paths = [p for p in paths if not options.only or any(o in p.stem for o in options.only)]
    if not paths:
        parser.error(f"no problems in {options.problems}")
    found = []
    for row in rows(
        paths, whole if options.whole else compared, options.seconds, options.tolerance
    ):
        found.append(row)
        print(_line(row), file=sys.stderr, flush=True)
        if options.out:
            save(options.out, {"rows": found})
    right = sum(r["correct"] for r in found)
    print(f"{right} of {len(found)} problems")
    return 0 if right == len(found) else 1


def _number(path: Path) -> tuple[int, str]:
    head = path.stem.partition("_")[0]
    return (int(head) if head.isdigit() else 0, path.stem)


def _line(row: dict[str, Any]) -> str:
    said = "ok" if row["correct"] else "FAILED " + row["reason"].replace("\n", " ")[:300]
    error = f" error {row['error']:.1e}" if "error" in row else ""
    return f"{row['problem']}: {said}{error}, {row['seconds']} s"


if __name__ == "__main__":
    raise SystemExit(main())
