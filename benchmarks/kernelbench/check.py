"""The check of a contest: by the suite's rule, and against float64 relative to eager's error.

Eager convolutions run in TF32 if PyTorch's flags say so. They may then differ from float64 by more
than the suite's tolerance. So a result is correct if its error against float64 is not much larger
than eager's, and it passes the suite's check against eager, or against eager in f32. The suite's
check is skipped if eager in its own precision does not pass it against float64.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_map

from benchmarks.kernelbench.suite import SEED, fault, trial_seeds
from benchmarks.kernelbench.venue import Venue
from benchmarks.kernelbench.verdict import ThreeResults, verdict
from frontends.compiled.module import CompiledModule
from frontends.kernelbench.problem import Problem
from frontends.pytorch.redrawn import redrawn
from ir.reference.reference import evaluate_storage

AFFORDABLE = 0.3  # Seconds of an eager call up to which float64 is computed too.
ROOM = 12  # Free memory that float64 needs, relative to the inputs.


@dataclass(frozen=True, slots=True)
class ProblemCheck:
    """The subject of a check."""

    problem: Problem
    venue: Venue
    ours: CompiledModule
    theirs: torch.nn.Module  # The module, on the venue's device.
    inputs: tuple[Any, ...]  # Inputs of a first call.
    # Gives the trial access to the device.
    turn: Callable[[], AbstractContextManager[None]] = nullcontext

    def made(self) -> dict[str, Any]:
        """Returns the fields of a row about correctness, with a reason if it is wrong."""
        with self.turn():
            wide = self._wide()
        passed = faults = in_f32 = 0
        said = ""
        for n, seed in enumerate(trial_seeds()):
            with self.turn():
                inputs = tree_map(self._placed, self.problem.inputs(seed, self.venue.place))
                number = self.ours.seed
                expected = self._theirs(self.theirs, inputs, number)
                got = self.ours(*inputs)
                wrong = fault(got, expected)
                passed += not wrong
                if wrong:
                    faults, said = faults + 1, said or wrong
                    in_f32 += not self._fault_in_f32(got, inputs, number)
                if n == 0:
                    exact = self._exact(wide, inputs, number, got, expected)
                del got, expected, inputs
                self.venue.settled()
        suite = {
            "trials": passed + faults,
            "passed": passed,
            "passed_with_f32": passed + in_f32,
            "fault": said,
        }
        reason = exact.pop("reason") or self._why(suite, exact)
        return {
            "suite": suite,
            "suite_passed": not faults,
            **exact,
            **({"reason": reason} if reason else {}),
        }

    def _why(self, suite: dict[str, Any], exact: dict[str, Any]) -> str:
        if suite["passed"] == suite["trials"] or suite["passed_with_f32"] == suite["trials"]:
            return ""
        if exact["eager_passes"] is False:  # Eager in its own precision is not close enough either.
            return ""
        return f"the suite's check: {suite['fault']}"

    def _theirs(self, module: torch.nn.Module, inputs: tuple[Any, ...], seed: int) -> Any:
        """Returns PyTorch's results. If our equations draw random numbers, PyTorch uses the
        same."""
        if self.ours.made.seed is None:
            return module(*inputs)
        return redrawn(module, inputs, seed, by=evaluate_storage)[0]

    def _fault_in_f32(self, got: Any, inputs: tuple[Any, ...], seed: int) -> str:
        """Checks by the suite's rule against eager without TF32."""
        if not torch.backends.cudnn.allow_tf32 or self.venue.place == "cpu":
            return "eager is in f32 already"
        torch.backends.cudnn.allow_tf32 = False
        try:
            return fault(got, self._theirs(copy.deepcopy(self.theirs), inputs, seed))
        finally:
            torch.backends.cudnn.allow_tf32 = True

    def _wide(self) -> Callable[[], torch.nn.Module] | str:
        """Returns the module in float64 as it is before any call, or why there is none."""
        size = sum(t.nbytes for t in self.inputs if isinstance(t, torch.Tensor))
        if ROOM * size > self.venue.free():
            return "there is no room for float64"
        probe = copy.deepcopy(self.theirs)  # A call may change its state.
        probe(*self.inputs)
        self.venue.settled()
        began = time.perf_counter()
        probe(*self.inputs)
        self.venue.settled()
        if (took := time.perf_counter() - began) > AFFORDABLE:
            return f"an eager call takes {took:.2f} s, which in float64 would take too long"
        # Made again: a copy shares what a module holds in functions.
        given = self.problem.made(SEED, place=self.venue.place)
        return _double(given.model.to(self.venue.place))

    def _exact(
        self, wide: Any, inputs: tuple[Any, ...], seed: int, got: Any, expected: Any
    ) -> dict[str, Any]:
        """Compares with float64. Returns the verdict, and whether eager passes the suite's check
        against it."""
        unknown = {"rel_err": None, "reference_rel_err": None, "eager_passes": None, "reason": ""}
        if isinstance(wide, str):
            return unknown | {"against": f"eager alone: {wide}"}
        try:
            truth = self._theirs(wide, tree_map(_wide_tensor, inputs), seed)
        except Exception as error:  # For example a module that makes f32 tensors in its call.
            words = f"{type(error).__name__}: {error}".splitlines()[0]
            return unknown | {"against": f"eager alone: float64 raises {words}"[:200]}
        found = verdict([ThreeResults(got, expected, truth)])
        return {
            "rel_err": found.rel_err,
            "reference_rel_err": found.reference_rel_err,
            "eager_passes": not fault(expected, truth),
            "reason": found.reason,
            "against": "module"
            if self.ours.made.seed is None
            else "module, with the draws of its equations",
        }

    def _placed(self, item: Any) -> Any:
        if not isinstance(item, torch.Tensor):
            return item
        return item.to(self.venue.place).contiguous()


def _double(module: torch.nn.Module) -> torch.nn.Module:
    """Converts a module to float64, including tensors that are plain attributes."""
    module.double()
    for part in module.modules():
        for name, value in list(vars(part).items()):
            if isinstance(value, torch.Tensor) and value.is_floating_point():
                setattr(part, name, value.double())
    return module


def _wide_tensor(item: Any) -> Any:
    floats = isinstance(item, torch.Tensor) and item.is_floating_point()
    return item.double() if floats else item
