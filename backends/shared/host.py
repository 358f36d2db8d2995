"""Kernels as shared libraries that run and are timed in this process, on the cores of this machine."""

from __future__ import annotations

import platform
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from backends.backend import Arrays, Built, Sizes, Timing
from backends.emit import TEMPLATES, Templates
from backends.manifest import Manifest
from backends.parallel import cores
from backends.parameters import parameters
from backends.shared.arrays import Fenced, beside, placed, results, unwritten
from backends.shared.clock import at_once, measured, readings
from backends.shared.compiler import Compiler
from backends.shared.launches import calls as launch_calls
from backends.shared.launches import tensors
from backends.shared.library import launches
from backends.shared.loops import Loops
from backends.shared.names import Names
from backends.shared.precompiled import precompiled
from backends.shared.view import kernel_view
from backends.timeline import Bar, write_timeline
from ir.machine import Machine
from ir.nest.nest import LoopNest
from ir.sizes import bind

PRELUDE = Path(__file__).parent / "prelude"
LAUNCH_SECONDS = 0.01  # of calls of one launch that a timeline shows


class Host:
    """A backend of this machine; a language says how its kernels are spelled, admitted and built."""

    names: Names
    statements: type[Loops]  # what becomes of the statements of a launch
    compiler: Compiler
    include: tuple[Path, ...] = (PRELUDE,)  # where its headers lie
    header = "launch.h"  # of them, the one that sources begin with
    admit: Callable[[str], None]  # BackendError("build") at what a source may not hold

    def __init__(self, manifest: Manifest, templates: Path = TEMPLATES):
        self.manifest = manifest
        self.templates = Templates(manifest.name, folder=templates)

    def emit(self, nest: LoopNest, machine: Machine) -> str:
        """One translation unit with a function for each launch."""
        self.manifest.require_dtypes(nest)
        view = kernel_view(nest, self.names, self.statements)
        return self.templates.render(f"kernel.{self.manifest.extension}.j2", **view)

    def build(self, source: str, nest: LoopNest, machine: Machine, folder: Path) -> Built:
        """A shared library under `folder`; a source that is more than kernels is refused."""
        self.admit(source)
        name = f"kernel.{self.manifest.extension}"
        return self.compiler.build(source, folder, name, self._headers())

    def words(self) -> Collection[str]:
        """What no name of a text may be but the text's own."""
        return self.names.words

    def run(
        self, built: Built, nest: LoopNest, machine: Machine, sizes: Sizes, inputs: Arrays
    ) -> dict[str, np.ndarray]:
        """The outputs, in the dtypes of the spec; nothing else is written."""
        buffers = placed(nest, sizes, inputs)
        for _, launch in launches(built, self.names, nest, sizes, buffers, cores()):
            launch()
        return results(nest, buffers, inputs)

    def library_calls(
        self, built: Built, nest: LoopNest, sizes: Sizes
    ) -> tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...]:
        """The calls of a built kernel on tensors of this process; see `LoadsHere`."""
        number = {p.name: n for n, p in enumerate(parameters(nest))}
        own = [number[p.name] for p in tensors(nest)]
        return tuple(
            (self.names.launch(call.launch), tuple(own[n] for n in call.tensors), call.sizes)
            for call in launch_calls(nest, bind(nest.spec, sizes))
        )

    def time(
        self, built: Built, nest: LoopNest, machine: Machine, sizes: Sizes, inputs: Arrays
    ) -> Timing:
        """The median time of a call, all launches together, data in caches as far as it fits.

        Calls of one reading write buffers of their own, which hold nothing of an earlier reading.
        """

        def calls(buffers: Mapping[str, Fenced]) -> list[Callable[[], None]]:
            return [call for _, call in launches(built, self.names, nest, sizes, buffers, cores())]

        first = placed(nest, sizes, inputs)
        count = at_once(together(calls(first)))
        sets = [first, *(beside(nest, sizes, first) for _ in range(count - 1))]
        blank = unwritten(nest, sizes)

        def clear() -> None:
            for buffers in sets:
                for name, array in blank.items():
                    buffers[name].array[...] = array

        every = [call for buffers in sets for call in calls(buffers)]
        times = readings(together(every), count, before=clear)
        figures = times.figures() | {"cores": float(cores())}
        return Timing(times.us, "measured", figures, outputs=results(nest, sets[-1], inputs))

    def profile(
        self,
        built: Built,
        nest: LoopNest,
        machine: Machine,
        sizes: Sizes,
        inputs: Arrays,
        trace: Path,
    ) -> Timing:
        """As `time`, with a bar for each launch."""
        timing = self.time(built, nest, machine, sizes, inputs)
        buffers = placed(nest, sizes, inputs)
        found = launches(built, self.names, nest, sizes, buffers, cores())
        write_timeline(trace, (Bar(n, measured(call, LAUNCH_SECONDS).us) for n, call in found))
        return timing

    def available(self, machine: Machine) -> Mapping[str, Any]:
        """Everything, where there is the compiler."""
        version = self.compiler.version()
        if not version:
            why = f"there is no {self.compiler.command}; install it"
            return {"correct_by": None, "time_kind": None, "why": why}
        self._headers()  # compiled here, as who builds a candidate may write nothing else
        return {
            "correct_by": "device",
            "time_kind": "measured",
            "own_cores": True,
            "why": "",
            "toolchain": version,
            "device": f"{processor()}, {cores()} cores",
        }

    def _headers(self) -> tuple[Path, ...]:
        """Where sources find their headers."""
        return precompiled(self.compiler.command, self.compiler.flags, self.include, self.header)


def together(calls: Sequence[Callable[[], None]]) -> Callable[[], None]:
    """One call that makes several."""

    def made() -> None:
        for call in calls:
            call()

    return made


@cache
def processor() -> str:
    """The processor's name as the system has it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())
