"""Networks of given kernels, built and timed as a whole, in a process of their own: kernels may be
code of others, and a device that was opened here could not be used by what is forked."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from backends.backend import BackendError, Built
from backends.compiled import Compiled, Kernel
from backends.parallel import on_all_cores
from backends.program.saved import linked
from backends.registry import backend_for
from backends.served import Served
from ir.digest import text_digest
from ir.machine import Machine
from ir.nest.nest import LoopNest
from ir.network import Network
from ir.spec import Spec
from search.core.lowered import lowered
from search.evaluator.local import module_path
from search.whole.times import WholeTimes, whole_times

SECONDS = 900.0  # that building and timing networks may take
# A program of its own: `multiprocessing` would run the caller's main file again.
_BOOT = (
    "import sys; sys.path[:] = sys.argv[3:]; "
    f"from {__package__}.timed import main; main(*sys.argv[1:3])"
)


@dataclass(frozen=True, slots=True)
class KernelTexts:
    """A kernel of a network."""

    backend: str  # its name
    variant: str  # the equations that the schedule is for
    schedule: str
    source: str


@dataclass(frozen=True, slots=True)
class TimedNetwork:
    """What runs apart."""

    call: Network
    before: Network | None  # computes constants; None where there are none
    machines: Mapping[str, Machine]  # the target by backend, the program's own first
    kernels: Mapping[str, KernelTexts]  # by the name of a kernel, those of `before` among them
    each: bool = True  # whether each kernel is timed, too

    def served(self, spec: Spec) -> Served:
        """The backend of a kernel."""
        name = self.kernels[spec.name].backend
        return Served(backend_for(self.machines[name], name), self.machines[name])

    def nest(self, spec: Spec) -> LoopNest:
        """That of a kernel; KernelError where its schedule does not lower."""
        texts = self.kernels[spec.name]
        return lowered(texts.variant, texts.schedule, self.machines[texts.backend], {})


def times_of(networks: Sequence[TimedNetwork]) -> list[WholeTimes | str]:
    """How long calls of some networks take (`whole_times`), or why that cannot be had. They are built
    and run in one process of its own."""
    with tempfile.TemporaryDirectory(prefix="whole-") as folder:
        asked, said = Path(folder) / "asked", Path(folder) / "said"
        asked.write_bytes(pickle.dumps(list(networks)))
        process = subprocess.Popen(
            [sys.executable, "-c", _BOOT, str(asked), str(said), *module_path()],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            _, words = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return [f"it takes longer than {SECONDS:g} s"] * len(networks)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if not said.is_file():
            last = words.decode(errors="replace").strip().splitlines()[-1:]
            return [f"its process ended with {process.returncode}: {''.join(last)}"] * len(networks)
        found = json.loads(said.read_text(encoding="utf-8"))
    return [one if isinstance(one, str) else WholeTimes(**one) for one in found]


def main(asked: str, said: str) -> None:
    """The process: reads the networks, and writes what became of each as JSON."""
    networks: list[TimedNetwork] = pickle.loads(Path(asked).read_bytes())
    built: dict[KernelTexts, Built] = {}
    found = [_found(network, Path(asked).parent, built) for network in networks]
    part = Path(said + ".part")
    part.write_text(json.dumps(found), encoding="utf-8")
    part.replace(said)


def _found(
    network: TimedNetwork, folder: Path, built: dict[KernelTexts, Built]
) -> dict[str, Any] | str:
    try:
        times = whole_times(linked(_compiled(network, folder, built)), network.each)
    except BackendError as error:
        return f"{error.stage}: {error.reason}"
    except Exception as error:  # a source is code of others
        return f"{type(error).__name__}: {error}"
    return asdict(times) if times else "no time is measured here"


def _compiled(network: TimedNetwork, folder: Path, built: dict[KernelTexts, Built]) -> Compiled:
    """A network whose kernels are built below a folder, those that were not built before."""
    before = network.before.kernels() if network.before else ()
    specs = list(dict.fromkeys((*network.call.kernels(), *before)))
    new = [spec for spec in specs if network.kernels[spec.name] not in built]

    def build(spec: Spec) -> Built:
        source = network.kernels[spec.name].source
        place = folder / f"{spec.name}_{text_digest(source)}"
        place.mkdir(exist_ok=True)
        by = network.served(spec)
        return by.backend.build(source, network.nest(spec), by.machine, place)

    for spec, made in zip(new, on_all_cores(build, new), strict=True):
        built[network.kernels[spec.name]] = made
    kernels = {}
    for spec in specs:
        texts, by = network.kernels[spec.name], network.served(spec)
        nest = network.nest(spec)
        kernels[spec] = Kernel(spec, nest, texts.source, built[texts], served=by)
    first, machine = next(iter(network.machines.items()))
    return Compiled(network.call, machine, backend_for(machine, first), kernels, network.before)
