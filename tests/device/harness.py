"""KernelBench's own judge over some solution files, in a process of its own.

    python3 -m tests.device.harness PAIRS.json

PAIRS.json is {"suite": its checkout, "language": the suite's word for that of the kernels, "pairs":
{name: [problem file, solution file]}}; the answer, on stdout, is what the judge says of each. PyTorch
computes in f32, not TF32, as our kernels do.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import types
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import torch

TRIALS = 5  # draws of inputs that results are compared on, as the suite has them
TIMED = 20
# Clients of language models and a reader of `.env` files, which the suite imports beside its judge.
_UNUSED = {"dotenv": "load_dotenv", "openai": "OpenAI", "litellm": "completion"}


def main(words: list[str]) -> int:
    """Judges, and prints the verdicts as one JSON object."""
    asked = json.loads(Path(words[0]).read_text(encoding="utf-8"))
    with redirect_stdout(sys.stderr):
        judge = _judge(Path(asked["suite"]))
        found = {
            name: _verdict(judge, asked["language"], *map(Path, pair))
            for name, pair in asked["pairs"].items()
        }
    print(json.dumps(found))
    return 0


def _judge(suite: Path) -> Any:
    """The suite's function, imported from a checkout."""
    for name, attribute in _UNUSED.items():
        if importlib.util.find_spec(name) is None:
            module = types.ModuleType(name)
            setattr(module, attribute, lambda *args, **kwargs: None)
            sys.modules[name] = module
    sys.path.insert(0, str(suite / "src"))
    from kernelbench.eval import eval_kernel_against_ref

    return eval_kernel_against_ref


def _verdict(judge: Any, language: str, problem: Path, solution: Path) -> dict[str, Any]:
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    result = judge(
        problem.read_text(encoding="utf-8"),
        solution.read_text(encoding="utf-8"),
        num_correct_trials=TRIALS,
        num_perf_trials=TIMED,
        measure_performance=True,
        device=torch.device("cuda:0"),
        backend=language,
        precision=torch.float32,
    )
    said = {name: str(value)[:300] for name, value in result.metadata.items()}
    return {
        "compiled": result.compiled,
        "correct": result.correctness,
        "trials": said.get("correctness_trials"),
        "mean_ms": result.runtime,
        "reference_mean_ms": getattr(result, "ref_runtime", None),
        "metadata": said,
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
