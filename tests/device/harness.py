"""KernelBench's own judge over some solution files, in a process of its own.

    python3 -m tests.device.harness PAIRS.json

PAIRS.json is {"suite": its checkout, "pairs": {name: [problem file, solution file]}}; the answer, on
stdout, is what the judge says of each. PyTorch computes in f32, not TF32, as our kernels do.
"""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from benchmarks.kernelbench.judged import replaced, verdict

TIMED = 20


def main(words: list[str]) -> int:
    """Judges, and prints the verdicts as one JSON object."""
    asked = json.loads(Path(words[0]).read_text(encoding="utf-8"))
    with redirect_stdout(sys.stderr):
        sys.path.insert(0, str(Path(asked["suite"]) / "src"))
        replaced()
        judge = import_module("kernelbench.eval").eval_kernel_against_ref
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        found = {name: _verdict(judge, *pair) for name, pair in asked["pairs"].items()}
    print(json.dumps(found))
    return 0


def _verdict(judge: Any, problem: str, solution: str) -> dict[str, Any]:
    theirs, ours = (Path(file).read_text(encoding="utf-8") for file in (problem, solution))
    said = verdict(judge, theirs, ours, timed=TIMED)
    return {
        "compiled": said["compiled"],
        "correct": said["correctness"],
        "trials": said.get("metadata", {}).get("correctness_trials"),
        "mean_ms": said.get("runtime"),
        "reference_mean_ms": said.get("ref_runtime"),
        "times_ms": said.get("times"),
        "reference_times_ms": said.get("ref_times"),
        "metadata": said.get("metadata"),
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
