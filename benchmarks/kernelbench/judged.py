"""Judges one `ModelNew` with KernelBench's own harness, in this process. `harness.py` starts it.

With `--wait` it runs its imports, then waits for a line on its standard input. Until then it does
not touch the device. It ends at the end of the input.

The harness's package imports clients of language models, which are not needed for judging. Empty
modules replace those that are not installed.
"""

from __future__ import annotations

import argparse
import copy
import importlib
import json
import sys
import types
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

AS_IS, TF32_OFF = "as_is", "tf32_off"  # PyTorch's default flags; no rounding to TF32.
MODES = (AS_IS, TF32_OFF)
CORRECT_TRIALS, PERF_TRIALS = 5, 100  # As in KernelBench's own scripts.
UNIT = "ms"  # Unit of the harness's times.
SPREAD = ("mean", "std", "min", "max", "num_trials")  # What the harness reports of them.
# Imports of `kernelbench.utils` and `kernelbench.eval` from packages that are not needed for
# judging.
UNUSED = {
    "dotenv": ("load_dotenv",),
    "openai": ("OpenAI",),
    "litellm": ("completion",),
    "tqdm": ("tqdm",),
    "requests": (),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the program: writes the verdict of each mode when it is complete."""
    asked = _parser().parse_args(arguments)
    sys.path.insert(0, str(asked.kernelbench / "src"))
    replaced()
    judge = importlib.import_module("kernelbench.eval").eval_kernel_against_ref
    if asked.wait and not sys.stdin.readline():
        return 1
    theirs, ours = (f.read_text(encoding="utf-8") for f in (asked.problem, asked.new))
    found: dict[str, Any] = {}
    flags = torch.backends.cudnn, torch.backends.cuda.matmul
    before = [flag.allow_tf32 for flag in flags]
    for mode in MODES:
        for flag, was in zip(flags, before, strict=True):
            flag.allow_tf32 = was and mode == AS_IS
        found[mode] = verdict(judge, theirs, ours)
        part = asked.said.with_suffix(".part")
        part.write_text(json.dumps(found), encoding="utf-8")
        part.replace(asked.said)
    return 0


def verdict(judge: Any, theirs: str, ours: str, timed: int = PERF_TRIALS) -> dict[str, Any]:
    """Returns the harness's verdict on a solution.

    theirs, ours: the texts of the problem and of the solution.
    timed: number of calls.
    """
    said = judge(
        original_model_src=theirs,
        custom_model_src=ours,
        num_correct_trials=CORRECT_TRIALS,
        num_perf_trials=timed,
        measure_performance=True,
        backend="triton",
    )
    if said is None:
        return {"compiled": False, "correctness": False, "why": "the harness gives no result"}
    metadata = {str(name): str(value)[:400] for name, value in said.metadata.items()}
    why = [text for name, text in metadata.items() if "error" in name or "issue" in name]
    return {
        "compiled": bool(said.compiled),
        "correctness": bool(said.correctness),
        "runtime": float(said.runtime),
        "ref_runtime": float(said.ref_runtime),
        "times": _spread(said.runtime_stats),
        "ref_times": _spread(said.ref_runtime_stats),
        "unit": UNIT,
        "metadata": metadata,
        **({"why": "; ".join(why)[:400]} if why and not said.correctness else {}),
    }


def _spread(stats: Mapping[str, Any]) -> dict[str, float]:
    return {name: stats[name] for name in SPREAD if name in stats}


def replaced() -> list[str]:
    """Replaces packages that are not installed and not needed for judging by empty ones. Returns
    their names."""
    absent = [name for name in UNUSED if find_spec(name) is None]
    for name in absent:
        module = types.ModuleType(name)
        for what in UNUSED[name]:
            setattr(module, what, _nothing)
        sys.modules[name] = module
    if find_spec("pydantic") is None:
        module = types.ModuleType("pydantic")
        module.__dict__["BaseModel"] = Values
        sys.modules["pydantic"] = module
        absent.append("pydantic")
    return absent


class Values:
    """Replaces pydantic's model in the harness: a value with the fields of its class, each with its
    default."""

    def __init__(self, **given: Any):
        for name in type(self).__annotations__:
            default = copy.copy(getattr(type(self), name, None))
            setattr(self, name, given.get(name, default))


def _nothing(*_: Any, **__: Any) -> None:
    """Replaces a function that is not called, or whose result is not used."""


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="kernelbench.judged")
    made.add_argument("--kernelbench", required=True, type=Path, help="a checkout of KernelBench")
    made.add_argument("--problem", required=True, type=Path, help="the problem's file")
    made.add_argument("--new", required=True, type=Path, help="the file with `ModelNew`")
    made.add_argument("--said", required=True, type=Path, help="the file for the verdicts")
    made.add_argument(
        "--wait", action="store_true", help="wait for a line on stdin before using the device"
    )
    return made


if __name__ == "__main__":
    sys.exit(main())
