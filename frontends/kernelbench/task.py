"""A task: a user's own file with a reference, its inputs, and tests of what is made from it.

    def reference(x, y): ...                     or `class Model(torch.nn.Module)`, made without arguments
    def inputs(seed, **shape): ...               the arguments of a call
    SHAPES = [({"n": 64}, 1.0), ...]             shapes and weights; else one without sizes
    TOLERANCE = dict(rtol=1e-3, atol=1e-5)       else by the dtype, see CLOSE
    def test_zeros(run): ...                     given what calls the kernels as the reference is called

The file is code of others and runs when a task is opened: do that in a process of its own
(`frontends/kernelbench/apart.py`).
"""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.utils._pytree import tree_flatten

from frontends.kernelbench.problem import executed, text_of
from frontends.pytorch.bound import BoundCall, Run
from frontends.pytorch.call import state_of
from frontends.pytorch.imported import Imported
from frontends.pytorch.module import imported
from ir.errors import KernelError
from ir.spec import Spec

CLOSE = {
    torch.float16: 1e-2,
    torch.bfloat16: 1e-2,
}  # KernelBench's tolerances, absolute and relative
_ELSE = 1e-4
SEEDS = (0, 1)  # of the inputs that results are compared on


@dataclass(frozen=True, slots=True)
class Task:
    """A task's text."""

    name: str  # the file's, without ending
    source: str
    path: str
    allow_torch: tuple[str, ...] = ()  # operators that are left to PyTorch

    @staticmethod
    def read(path: str | Path, allow_torch: Sequence[str] = ()) -> Task:
        """The task in a file; nothing runs. KernelError where it cannot be read."""
        return Task(Path(path).stem, text_of(path), str(path), tuple(allow_torch))

    def opened(self) -> Opened:
        """Runs the file; KernelError where the code raises, or a definition is lacking or wrong."""
        return executed(self.source, self.path, self._opened)

    def _opened(self, names: dict[str, Any]) -> Opened:
        for either in (("reference", "Model"), ("inputs",)):
            if not any(callable(names.get(name)) for name in either):
                raise KernelError(
                    f"the task defines no `{either[0]}`",
                    where=self.path,
                    allowed="reference(*inputs) or Model, and inputs(seed, **shape)",
                )
        torch.manual_seed(0)
        subject = names["reference"] if "reference" in names else names["Model"]()
        shapes = self._shapes(names.get("SHAPES", [({}, 1)]))
        made = names["inputs"](SEEDS[0], **shapes[0][0])
        tests = {n: f for n, f in names.items() if n.startswith("test_") and callable(f)}
        for name, test in tests.items():
            if list(inspect.signature(test).parameters) != ["run"]:
                raise KernelError(
                    f"`{name}` takes other than `run`", where=self.path, allowed=f"{name}(run)"
                )
        return Opened(
            subject,
            names["inputs"],
            tuple(made),
            shapes,
            self._tolerance(names.get("TOLERANCE")),
            tests,
            self.allow_torch,
        )

    def _shapes(self, given: Any) -> tuple[tuple[dict[str, int], float], ...]:
        """The shapes with their weights, the heaviest first, then as they are given."""
        allowed = '[({"n": 64}, 1.0), ...]: shapes that differ, with positive weights'
        try:
            pairs = [(dict(shape), float(weight)) for shape, weight in given]
        except (TypeError, ValueError):
            pairs = []
        shapes = [shape for shape, _ in pairs]
        weights = [weight for _, weight in pairs]
        twice = any(shape in shapes[:n] for n, shape in enumerate(shapes))
        if not pairs or twice or not all(math.isfinite(w) and w > 0 for w in weights):
            raise KernelError(f"SHAPES is {given!r}", where=self.path, allowed=allowed)
        first = weights.index(max(weights))
        return (pairs[first], *pairs[:first], *pairs[first + 1 :])

    def _tolerance(self, given: Any) -> dict[str, float] | None:
        if given is None:
            return None
        numbers = isinstance(given, dict) and all(
            isinstance(v, int | float) for v in given.values()
        )
        if not numbers or set(given) != {"rtol", "atol"}:
            raise KernelError(
                f"TOLERANCE is {given!r}", where=self.path, allowed="dict(rtol=1e-3, atol=1e-5)"
            )
        return given


@dataclass(frozen=True, slots=True)
class Opened:
    """A task whose file has run."""

    subject: torch.nn.Module | Callable[..., Any]
    inputs: Callable[..., Any]
    given: tuple[Any, ...]  # inputs of the first seed, at the first shape
    # What is tuned for, with weights, the heaviest first.
    shapes: tuple[tuple[Mapping[str, int], float], ...]
    tolerance: Mapping[str, float] | None  # None by dtype
    tests: Mapping[str, Callable[..., Any]]
    allow_torch: tuple[str, ...] = ()

    @property
    def shape(self) -> Mapping[str, int]:
        """The shape of all comparisons."""
        return self.shapes[0][0]

    def at(self, shape: Mapping[str, int]) -> Opened:
        """The task at one of its shapes alone. Its tests are those of the heaviest shape, whose
        inputs they may give, and nobody's else."""
        tests = self.tests if shape == self.shape else {}
        given = tuple(self.inputs(SEEDS[0], **shape))
        return replace(self, given=given, shapes=((shape, 1.0),), tests=tests)

    def imported(self, name: str) -> Imported:
        """The equations of a call; KernelError for one that draws numbers, which nothing can be
        compared with."""
        made = imported(self._subject(), self.given, name=name, allow_torch=self.allow_torch)
        if made.seed is not None:
            raise KernelError(
                "the reference draws random numbers",
                hint="draw them in `inputs`, where the seed is given",
            )
        return made

    def _subject(self) -> torch.nn.Module | Callable[..., Any]:
        """As it was made, whatever calls have left in it since."""
        module = isinstance(self.subject, torch.nn.Module)
        return copy.deepcopy(self.subject) if module else self.subject

    def results(self, name: str, spec: Spec, run: Run) -> Iterator[tuple[str, str]]:
        """What is wrong with a way to compute the spec: for each comparison and test its name and
        its fault, empty where there is none. KernelError where the file has other equations now."""
        made = self.imported(name)
        if made.spec != spec:
            raise KernelError("the file says other equations each time it is read")
        module = self.subject if isinstance(self.subject, torch.nn.Module) else None

        def called(*args: Any) -> Any:
            own = copy.deepcopy(module)
            if own is not None:
                own.requires_grad_(False)  # a test has no say in them
            return BoundCall(made, state_of(made, own), run)(*args)

        for seed in SEEDS:
            yield f"inputs({seed})", _fault(partial(self._compare, called, seed))
        for test, function in self.tests.items():
            yield test, _fault(partial(function, called))

    def _compare(self, called: Callable[..., Any], seed: int) -> None:
        ours, theirs = (tuple(self.inputs(seed, **self.shape)) for _ in range(2))
        with torch.no_grad():
            expected, shape = tree_flatten(self._subject()(*theirs))
            found, same = tree_flatten(called(*ours))
        assert same == shape, f"the results are {same}, not {shape}"
        for a, b in zip(found, expected, strict=True):
            close = CLOSE.get(getattr(b, "dtype", None), _ELSE)
            limits = self.tolerance or {"rtol": close, "atol": close}
            torch.testing.assert_close(a, b, **limits, equal_nan=True)


def _fault(work: Callable[[], Any]) -> str:
    try:
        work()
    except Exception as error:  # the file is code of others
        return " ".join(f"{type(error).__name__}: {error}".split())
    return ""
