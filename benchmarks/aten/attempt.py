"""An attempt at an operator: its calls are imported, lowered, built, run and judged."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

from backends.backend import BackendError
from backends.compiled import compiled
from benchmarks.aten.agreement import PROPERTIES, fault
from benchmarks.aten.call import OperatorCall
from benchmarks.aten.samples import calls, op_tables
from benchmarks.attempts import serving
from benchmarks.notes import MOST_WORDS
from frontends.aten.against import meta_of, tensors_of
from frontends.aten.apply import apply
from frontends.builder import Builder
from frontends.dtypes import TORCH
from frontends.pytorch.bound import BoundCall, array, tensor
from frontends.pytorch.module import imported
from ir.errors import KernelError
from ir.spec import Spec

# The server that forks the attempts reads these once. On a machine without a GPU this opens no
# device.
if not (torch.version.cuda or torch.version.hip):
    op_tables()

# Their results are a bool and complex numbers, which no exported graph returns.
DIRECT = ("allclose", "polar")
ALIKE = "nothing is computed"  # The error of a call whose result is its argument.


@dataclass(frozen=True, slots=True)
class OperatorAttempt:
    """The task of a process."""

    operator: str
    dtype: str  # Its name in the language.
    target: str
    samples: int
    notes: Path  # The file of its row.
    backend: str | None = None  # None: the target's first.


def attempt(task: OperatorAttempt) -> dict[str, Any]:
    """Returns the row of an operator and dtype.

    The verdict is `fail` if a call fails, else `not expressible` if a call has no equations, else
    `pass`.
    """
    properties = task.operator in PROPERTIES
    row: dict[str, Any] = {
        "judged_by": "properties" if properties else "values",
        "passed": 0,
        "verdict": "fail",
    }
    found = calls(task.operator, TORCH[task.dtype], task.samples)
    row |= {"samples": len(found), "reason": "" if found else "there are no samples"}
    verdicts = set()
    for n, one in enumerate(found):
        task.notes.write_text(json.dumps(row | {"at": one.text()}), encoding="utf-8")
        verdict, reason = _tried(task, one, n)
        verdicts.add(verdict)
        row["passed"] += verdict == "pass"
        if reason and (not row["reason"] or verdict == "fail"):
            row["reason"] = f"{one.text()}: {reason}"[:MOST_WORDS]
    worst = ("fail", "not expressible", "pass")
    return row | {"verdict": next((v for v in worst if v in verdicts), "fail")}


def _tried(task: OperatorAttempt, call: OperatorCall, seed: int) -> tuple[str, str]:
    stage = "import"
    try:
        run = (_direct if task.operator in DIRECT else _imported)(call, seed)
        stage = "lower"
        with tempfile.TemporaryDirectory(prefix="aten-") as folder:
            got = run(task, Path(folder))
        stage = "check"
        why = fault(task.operator, call, got)
    except BackendError as error:
        return "fail", f"{error.stage}: {error.reason}"
    except KernelError as error:
        return ("not expressible" if stage == "import" else "fail"), f"{stage}: {error}"
    except Exception as error:  # PyTorch's exporter raises all kinds of errors.
        return "fail", f"{stage}: {type(error).__name__}: {error}"
    return ("fail", f"check: {why}") if why else ("pass", "")


Run = Callable[[OperatorAttempt, Path], Any]  # With a folder, runs the call and returns its result.


def _imported(call: OperatorCall, seed: int) -> Run:
    """Runs a call through the importer, as for a user's function."""
    given = [t.clone() for t in call.tensors]
    try:
        made = imported(call.function(), given, name="call")
    except KernelError as error:
        if ALIKE not in str(error) or not _alike(call):
            raise
        return lambda *_: call()

    def run(task: OperatorAttempt, folder: Path) -> Any:
        kernels = _kernels(made.spec, made.aliases, task, folder)
        with torch.no_grad():
            return BoundCall(made, {}, kernels, seed)(*given)

    return run


def _alike(call: OperatorCall) -> bool:
    """Whether each result is an unchanged argument."""
    results = tree_leaves(call.operator(*call.args, **call.kwargs))
    known = {(t.data_ptr(), t.shape) for t in call.tensors}
    return all((r.data_ptr(), r.shape) in known for r in results)


def _direct(call: OperatorCall, seed: int) -> Run:
    """Runs a call with only the operator's rule. A complex result becomes pairs."""
    builder, held = Builder(), {}

    def placed(item: Any) -> Any:
        if not isinstance(item, torch.Tensor):
            return item
        meta = meta_of(item)
        value = builder.input("x", meta.dtype, meta.shape)
        held[value.name] = array(item)
        return value

    args, kwargs = tree_map(placed, (call.args, dict(call.kwargs)))
    out = tuple(meta_of(t) for t in tensors_of(call()))
    made = apply(builder, call.operator, args, kwargs, out)
    spec = builder.spec("call", list(made))

    def run(task: OperatorAttempt, folder: Path) -> Any:
        found = _kernels(spec, builder.aliases, task, folder)(held)
        results = [tensor(a, t.dtype) for a, t in zip(found, spec.outputs, strict=True)]
        return [
            torch.view_as_complex(t) if theirs.is_complex() else t
            for t, theirs in zip(results, tensors_of(call()), strict=True)
        ]

    return run


def _kernels(spec: Spec, aliases: Mapping[str, str], task: OperatorAttempt, folder: Path) -> Any:
    machine, backend = serving(task.target, task.backend)
    return compiled(spec, {}, aliases, machine, backend, folder)
