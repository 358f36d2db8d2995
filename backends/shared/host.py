"""Kernels as shared libraries, run and timed on the cores of this machine in processes of their own."""

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
        with self._loaded(built, nest, sizes, inputs) as kernel:
            kernel.seconds(*kernel.together())
        return results(nest, kernel.sets[0], inputs)

    def _loaded(
        self, built: Built, nest: LoopNest, sizes: Sizes, inputs: Arrays, count: int = 1
    ) -> AbstractContextManager[Loaded]:
        """The kernel in a process of its own, with so many sets of tensors."""
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
        """The median time of a call, all launches together, data in caches as far as it fits.

        Calls of one reading write buffers of their own, which hold nothing of an earlier reading; a call on
        others comes before it, so that threads and caches are warm. The clock is that of the kernel's
        process, which this one's must bear out.
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
        """As `time`, with a bar for each launch."""
        timing = self.time(built, nest, machine, sizes, inputs)
        with self._loaded(built, nest, sizes, inputs) as kernel:
            bars = [Bar(name, _us(kernel, call)) for name, call in kernel.calls[0]]
        write_timeline(trace, bars)
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


def _us(kernel: Loaded, call: Call) -> float:
    """The time of a launch alone, in microseconds."""
    count = at_once(partial(kernel.seconds, call))
    return readings(partial(kernel.seconds, *[call] * count), count, LAUNCH_SECONDS).us


@cache
def processor() -> str:
    """The processor's name as the system has it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())
