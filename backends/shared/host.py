"""Kernels as shared libraries, run and timed on this machine's cores in separate processes."""

from __future__ import annotations

import platform
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from backends.backend import Arrays, Built, Sizes, Timing
from backends.caged.native import Call
from backends.emit import TEMPLATES, Templates
from backends.manifest import Manifest
from backends.parallel import cores
from backends.parameters import parameters
from backends.shared.arrays import given, results, unwritten
from backends.shared.clock import TwoClocks, at_once, readings
from backends.shared.compiler import Compiler
from backends.shared.launches import calls as launch_calls
from backends.shared.launches import tensors
from backends.shared.library import Loaded, loaded
from backends.shared.loops import Loops
from backends.shared.names import Names
from backends.shared.precompiled import precompiled
from backends.shared.view import kernel_view
from backends.timeline import Bar, write_timeline
from ir.machine import Machine
from ir.nest.nest import LoopNest
from ir.sizes import bind

PRELUDE = Path(__file__).parent / "prelude"
LAUNCH_SECONDS = 0.01  # of calls of a launch, for a timeline


class Host:
    """A backend of this machine. A language defines how kernels are written, admitted and built."""

    names: Names
    statements: type[Loops]  # converts the statements of a launch
    compiler: Compiler
    include: tuple[Path, ...] = (PRELUDE,)  # folders of its headers
    header = "launch.h"  # the header that sources include
    admit: Callable[[str], None]  # raises BackendError("build") for an inadmissible source

    def __init__(self, manifest: Manifest, templates: Path = TEMPLATES):
        self.manifest = manifest
        self.templates = Templates(manifest.name, folder=templates)

    def emit(self, nest: LoopNest, machine: Machine) -> str:
        """One translation unit with a function for each launch."""
        self.manifest.require_dtypes(nest)
        view = kernel_view(nest, self.names, self.statements)
        return self.templates.render(f"kernel.{self.manifest.extension}.j2", **view)

    def build(self, source: str, nest: LoopNest, machine: Machine, folder: Path) -> Built:
        """A shared library in `folder`. Refuses an inadmissible source."""
        self.admit(source)
        name = f"kernel.{self.manifest.extension}"
        return self.compiler.build(source, folder, name, self._headers())

    def words(self) -> Collection[str]:
        """Reserved words, with which a kernel's names may clash."""
        return self.names.words

    def run(
        self, built: Built, nest: LoopNest, machine: Machine, sizes: Sizes, inputs: Arrays
    ) -> dict[str, np.ndarray]:
        """The outputs, in the dtypes of the spec. Raises BackendError("check") if anything else is
        written."""
        with self._loaded(built, nest, sizes, inputs) as kernel:
            kernel.seconds(*kernel.together())
        return results(nest, kernel.sets[0], inputs)

    def _loaded(
        self, built: Built, nest: LoopNest, sizes: Sizes, inputs: Arrays, count: int = 1
    ) -> AbstractContextManager[Loaded]:
        """The kernel in a new process, with `count` sets of tensors."""
        return loaded(built, self.names, nest, sizes, given(nest, inputs), cores(), count)

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
        """The median time of a call with all launches, with warm caches as far as the data fits.

        The calls of a reading write separate buffers, which contain nothing of an earlier reading.
        A call on other buffers comes first, so that threads and caches are warm. The time is by the
        clock of the kernel's process, and is checked against this one's.
        """
        with self._loaded(built, nest, sizes, inputs) as kernel:
            count = at_once(partial(kernel.seconds, *kernel.together()))
        with self._loaded(built, nest, sizes, inputs, 1 + count) as kernel:
            blank = unwritten(nest, sizes)
            warm, *timed = map(kernel.together, range(1 + count))

            def before() -> None:
                for buffers in kernel.sets[1:]:
                    for name, array in blank.items():
                        buffers[name].array[...] = array
                kernel.seconds(*warm)

            both = TwoClocks(kernel.seconds)
            calls = [call for each in timed for call in each]
            times = readings(partial(both.seconds, *calls), count, before=before)
            both.require_alike()
        figures = times.figures() | {"cores": float(cores())}
        return Timing(times.us, "measured", figures, outputs=results(nest, kernel.sets[-1], inputs))

    def profile(
        self,
        built: Built,
        nest: LoopNest,
        machine: Machine,
        sizes: Sizes,
        inputs: Arrays,
        trace: Path,
    ) -> Timing:
        """The same as `time`, with a bar for each launch."""
        timing = self.time(built, nest, machine, sizes, inputs)
        with self._loaded(built, nest, sizes, inputs) as kernel:
            bars = [Bar(name, _us(kernel, call)) for name, call in kernel.calls[0]]
        write_timeline(trace, bars)
        return timing

    def available(self, machine: Machine) -> Mapping[str, Any]:
        """Everything, if the compiler is installed."""
        version = self.compiler.version()
        if not version:
            why = f"there is no {self.compiler.command}; install it"
            return {"correct_by": None, "time_kind": None, "why": why}
        self._headers()  # compiled here, because a candidate's build cannot write elsewhere
        return {
            "correct_by": "device",
            "time_kind": "measured",
            "own_cores": True,
            "why": "",
            "toolchain": version,
            "device": f"{processor()}, {cores()} cores",
        }

    def _headers(self) -> tuple[Path, ...]:
        """The folders of the headers for sources."""
        return precompiled(self.compiler.command, self.compiler.flags, self.include, self.header)


def _us(kernel: Loaded, call: Call) -> float:
    """The time of a single launch, in microseconds."""
    count = at_once(partial(kernel.seconds, call))
    return readings(partial(kernel.seconds, *[call] * count), count, LAUNCH_SECONDS).us


@cache
def processor() -> str:
    """The processor's name according to the system."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())
