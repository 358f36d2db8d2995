"""Builds a source: a cubin for each set of constants, and metadata of the launches.

    kernel.EXTENSION  the source
    launches.json     grid, block and arguments of each launch; see backends/gpu/source/launches.py
    <digest>.cubin    the code for one set of constants, which depend on sizes
    <digest>.json     its sha256, and the toolchain that made it

Building a cubin needs no GPU. These files suffice to launch it without the compiler.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backends.backend import BackendError, Built
from backends.gpu.apart import apart
from backends.gpu.child import limit_memory
from backends.gpu.cubins.code import cuobjdump, programs
from backends.gpu.launched.builds import compiled_launches
from backends.gpu.model.builds import check_limits, figures
from backends.gpu.source.launches import calls, constants, metadata
from backends.gpu.threads.thread import ThreadProgram
from backends.parallel import on_all_cores
from ir.digest import text_digest
from ir.machine import Machine
from ir.workload import Sizes
from machines.gpu.facts import facts

LAUNCHES = "launches.json"
Launches = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Language:
    """A kernel language with its compiler."""

    file: str  # file name of a source
    table: str  # the table of a target file with the architecture `arch`
    missing: str  # advice where there is no compiler
    seconds: float  # limit for one compilation
    memory: int  # bytes that one compilation may use in addition to the process's memory
    version: Callable[[], str]  # the compiler's name and version; empty where it is not installed
    load: Callable[[str], object]  # loads the compiler for an architecture
    # Compiles a source with its launches to a cubin, at sizes, for an architecture; runs in a child.
    compile: Callable[[str, Launches, Mapping[str, int], str], bytes]

    def arch(self, machine: Machine) -> str:
        """The compiler's name of a machine's architecture."""
        return f"sm_{machine.details[self.table]['arch']}"

    def number(self, machine: Machine) -> int:
        """The architecture as a number."""
        return int(self.arch(machine).removeprefix("sm_").rstrip("af"))

    def build(
        self,
        source: str,
        program: ThreadProgram,
        sizes: Mapping[str, int],
        machine: Machine,
        folder: Path,
    ) -> Built:
        """Writes a source and the metadata of its launches, and compiles it for given sizes.

        Raises BackendError("build") where the compiler refuses, hangs or dies, where the source
        lacks a launch, and where no device could run the result.
        """
        file = folder / self.file
        file.write_text(source, encoding="utf-8")
        given = metadata(program)
        (folder / LAUNCHES).write_text(json.dumps(given, indent=1), encoding="utf-8")
        began = time.perf_counter()
        image = self.image(file, machine, sizes)
        seconds = time.perf_counter() - began
        names = (one.name for one in program.launches)
        code = programs(image, self.number(machine), names, cuobjdump)
        stages = {n.name: max((t.stages for t in n.shared), default=1) for n in program.launches}
        table = facts(machine)
        done = compiled_launches(calls(given, sizes), code, stages, machine.warp, seconds)
        for one in done:
            check_limits(one, table)
        return Built(file, figures(done, table), sha256(image))

    def image(self, file: Path, machine: Machine, sizes: Mapping[str, int]) -> Path:
        """`images` for one set of sizes."""
        return self.images(file, machine, [sizes])[0]

    def images(
        self, file: Path, machine: Machine, every: Sequence[Mapping[str, int]]
    ) -> list[Path]:
        """The cubins of a built source for each of some sizes. Missing ones are compiled in a
        child, on all cores. Raises BackendError("build") where a file differs from the one that was
        built."""
        given, arch = launches(file), self.arch(machine)
        source, told = file.read_text(encoding="utf-8"), json.dumps(given, sort_keys=True)
        found = []
        for sizes in every:
            numbers = (f"{name}={number}" for name, number in constants(given, sizes).items())
            parts = (arch, source, told, *numbers)
            found.append(file.parent / f"{text_digest(chr(0).join(parts))}.cubin")
        named = dict(zip(found, every, strict=True))
        if lacking := {image: dict(at) for image, at in named.items() if not image.exists()}:
            self._make(lacking, source, given, arch)
        for image in named:
            made = json.loads(image.with_suffix(".json").read_text(encoding="utf-8"))
            if sha256(image) != made["sha256"]:
                raise BackendError(
                    "build", f"{image.name} has sha256 {sha256(image)}; {made['sha256']} was built"
                )
        return found

    def _make(self, lacking: Mapping[Path, Sizes], source: str, given: Launches, arch: str) -> None:
        """Compiles cubins into one folder, each for the constants at some sizes."""
        if not self.version():
            raise BackendError("build", self.missing)
        self.load(arch)  # loaded here, so that children need not load it again
        codes = apart(
            _compiled,
            *(self.compile, self.memory, source, given, list(lacking.values()), arch),
            seconds=self.seconds * len(lacking),
            stage="build",
            folder=next(iter(lacking)).parent,
        )
        for (image, sizes), code in zip(lacking.items(), codes, strict=True):
            self._keep(image, code, constants(given, sizes), arch)

    def _keep(self, image: Path, code: bytes, set_to: Mapping[str, int], arch: str) -> None:
        """Writes a cubin and its metadata."""
        made = {
            "sha256": hashlib.sha256(code).hexdigest(),
            "toolchain": self.version(),
            "arch": arch,
            "constants": set_to,
        }
        # The cubin comes last: where it exists, its metadata exists too.
        text = json.dumps(made, indent=1).encode()
        for file, data in ((image.with_suffix(".json"), text), (image, code)):
            part = file.with_name(f"{file.name}.{os.getpid()}")
            part.write_bytes(data)
            part.replace(file)


def _compiled(
    place: Path,
    compile: Callable[..., bytes],
    memory: int,
    source: str,
    given: Launches,
    every: Sequence[Sizes],
    arch: str,
) -> list[bytes]:
    """The cubins for some sizes, compiled with at most `memory` additional bytes."""
    limit_memory(memory)
    return list(on_all_cores(lambda sizes: compile(source, given, sizes, arch), every))


def launches(file: Path) -> Launches:
    """The metadata of a built source's launches."""
    return json.loads((file.parent / LAUNCHES).read_text(encoding="utf-8"))


def sha256(file: Path) -> str:
    """The sha256 of a file."""
    return hashlib.sha256(file.read_bytes()).hexdigest()
