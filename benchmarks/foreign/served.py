"""The process that a solution runs in: sandboxed, told what to compute, never why.

It knows the solution's text, the arguments of its model, weights and inputs. The reference, the
secret and the correct results stay in the judge's process. The judge trusts nothing that this
process reports, because the solution controls it.
"""

from __future__ import annotations

import base64
import contextlib
import os
import pickle
import re
import socket
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from benchmarks.foreign.counted import Drawn, Request, counted
from benchmarks.foreign.frames import Ended, Line
from benchmarks.foreign.stopwatch import EventClock
from search.evaluator import sandbox
from search.evaluator.groups import Group
from search.evaluator.sandbox import Limits

FILE = "solution.py"
SAID = 400  # Characters of an error.
_FOLLOWED = re.compile(r"\bload_inline\b|cpp_extension")


def main(number: int, folder: str) -> None:
    """Serves the judge at the other end of a socket, until it closes that."""
    line = Line(socket.socket(fileno=number))
    first, _ = line.receive()
    limits = Limits(**{**first["limits"], "devices": tuple(first["limits"]["devices"])})
    place = torch.device(first["place"])
    group = first["group"]
    made = Group(tuple(map(Path, group["folders"])), group["held"]) if group else None
    said = sandbox.enter(Path(folder), limits, made)
    clock = EventClock.of(place)  # Before anything is loaded that could change it.
    os.environ.update(sandbox.homes(Path(folder)))
    # Threads would share one limit and reorder sums from run to run.
    torch.set_num_threads(1)
    line.send({"kind": "ready", "sandbox": said})
    served = Served(place, clock)
    with contextlib.suppress(Ended):
        while True:
            table, values = line.receive()
            try:
                answer, given = getattr(served, f"do_{table['do']}")(table, values)
            except BaseException as error:
                if isinstance(error, SystemExit | KeyboardInterrupt):
                    raise
                kind = "memory" if isinstance(error, MemoryError) else "raised"
                text = f"{type(error).__name__}: {error}"[:SAID]
                answer, given = {"kind": kind, "text": text}, None
            line.send(answer, given)


class Served:
    """The requests to a solution, in this order: load, make, call, hold, time, results, draw,
    count."""

    def __init__(self, place: torch.device, clock: EventClock | None):
        self.place = place
        self.clock = clock
        self.names: dict[str, Any] = {}
        self.model: Any = None
        self.sets: list[Any] = []  # Sets of inputs that are timed.
        self.results: list[Any] = []  # Results of the last timed call on each.
        self.drawn: list[Drawn] = []  # The sets, for calls that are counted.
        self.own: set[str] = set()  # Kernels that were launched, as far as visible here.

    def do_load(self, table: dict[str, Any], _: Any) -> tuple[dict[str, Any], Any]:
        """Runs the solution's file."""
        source = table["source"]
        Path(FILE).write_text(source, encoding="utf-8")  # Triton reads it there.
        _follow(source, self.own.add)
        module = types.ModuleType("solution")
        module.__file__ = str(Path(FILE).absolute())
        sys.modules["solution"] = module
        exec(compile(source, module.__file__, "exec"), vars(module))
        self.names = vars(module)
        return {"kind": "loaded", "has": callable(self.names.get("ModelNew"))}, None

    def do_make(self, table: dict[str, Any], state: Any) -> tuple[dict[str, Any], Any]:
        """Makes a model. Its weights follow from the seed, as in KernelBench.

        They are the reference's if all names and shapes are equal.
        """
        arguments = pickle.loads(base64.b64decode(table["arguments"]))
        torch.manual_seed(table["seed"])
        with self.place:
            model = self.names["ModelNew"](*arguments)
        if isinstance(model, torch.nn.Module):
            model = model.to(self.place)
            own = model.state_dict()
            alike = own.keys() == state.keys() and all(own[k].shape == state[k].shape for k in own)
            if alike and state:
                model.load_state_dict(state)
        else:
            alike = False
        self.model = model
        return {"kind": "made", "weights": "the reference's" if alike else "by the seed"}, None

    def do_call(self, table: dict[str, Any], inputs: Any) -> tuple[dict[str, Any], Any]:
        """Calls the model. Returns its results, and the inputs after the call."""
        given = self._placed(inputs)
        with torch.no_grad(), _listed(table.get("listed", False)) as operators:
            result = self.model(*given)
        if self.clock:
            self.clock.wait()
        said = {"kind": "result", "own": sorted(self.own), "operators": sorted(operators)}
        return said, [result, given]

    def do_hold(self, table: dict[str, Any], sets: Any) -> tuple[dict[str, Any], Any]:
        """Copies sets of inputs to the device."""
        self.sets = [self._placed(s) for s in sets]
        return {"kind": "held"}, None

    def do_time(self, table: dict[str, Any], _: Any) -> tuple[dict[str, Any], Any]:
        """Times calls with the device's events. It sends only these times and a few sums, because
        the judge's clock runs."""
        assert self.clock is not None, "times are taken on a device"
        with torch.no_grad():
            found = self.clock.times(self.model, self.sets, table["plan"], table["weights"])
        self.results = found.results
        return {"kind": "times", "us": found.us, "sums": found.sums}, None

    def do_draw(self, table: dict[str, Any], _: Any) -> tuple[dict[str, Any], Any]:
        """Allocates the inputs of counted calls."""
        self.drawn = [Drawn(s) for s in self.sets]
        return {"kind": "drawn"}, None

    def do_count(self, table: dict[str, Any], _: Any) -> tuple[dict[str, Any], Any]:
        """Calls as often as requested. It sends only a few sums, because the judge's clock runs."""
        request = Request(table["seed"], table["calls"])
        with torch.no_grad():
            sums = counted(self.model, self.drawn, request, table["scales"])
        if self.clock:
            self.clock.wait()
        return {"kind": "counted", "sums": sums}, None

    def do_results(self, table: dict[str, Any], _: Any) -> tuple[dict[str, Any], Any]:
        """Returns the results of the last timed call on each set."""
        return {"kind": "results"}, self.results

    def _placed(self, inputs: Any) -> list[Any]:
        return tree_map(
            lambda v: v.to(self.place) if isinstance(v, torch.Tensor) else v, list(inputs)
        )


class _Listed(TorchDispatchMode):
    """Records the names of PyTorch's operators."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.names.add(str(function.overloadpacket))
        return function(*args, **(kwargs or {}))


@contextlib.contextmanager
def _listed(wanted: bool) -> Iterator[set[str]]:
    if not wanted:
        yield set()
        return
    with _Listed() as mode:
        yield mode.names


def _follow(source: str, launched: Callable[[str], None]) -> None:
    """Records launches of kernels that belong to no library, for the toolchains that a text
    uses."""
    if "triton" in source:
        with contextlib.suppress(ImportError):  # The text itself will report it.
            _follow_triton(launched)
    if _FOLLOWED.search(source):
        _follow_extensions(launched)
    if "cutlass" in source:
        with contextlib.suppress(ImportError):
            _follow_cute(launched)


def _follow_triton(launched: Callable[[str], None]) -> None:
    from triton.runtime.interpreter import InterpretedFunction
    from triton.runtime.jit import JITFunction

    for kind in (InterpretedFunction, JITFunction):
        _before(kind, "run", lambda kernel: launched(f"triton: {kernel.fn.__name__}"))


def _follow_cute(launched: Callable[[str], None]) -> None:
    from cutlass.base_dsl.dsl import BaseDSL

    _before(BaseDSL, "_func", lambda _: launched("cute: a function"))


def _before(kind: type, name: str, told: Callable[[Any], None]) -> None:
    before = getattr(kind, name)

    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        told(self)
        return before(self, *args, **kwargs)

    setattr(kind, name, run)


def _follow_extensions(launched: Callable[[str], None]) -> None:
    from torch.utils import cpp_extension

    for name in ("load", "load_inline"):
        before = getattr(cpp_extension, name)

        def made(*args: Any, _before: Any = before, **kwargs: Any) -> Any:
            return _Extension(_before(*args, **kwargs), launched)

        setattr(cpp_extension, name, made)


class _Extension:
    """A compiled module whose calls are recorded."""

    def __init__(self, module: Any, launched: Callable[[str], None]):
        self._module, self._launched = module, launched

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        if not callable(found):
            return found

        def call(*args: Any, **kwargs: Any) -> Any:
            self._launched(f"extension: {name}")
            return found(*args, **kwargs)

        return call
