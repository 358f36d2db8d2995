"""A backend for tests whose candidates act on their evaluator as their source says."""

import ctypes
import os
import re
import signal
import socket
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from backends.backend import BackendError, Built, Timing
from backends.gpu.apart import apart
from backends.manifest import Manifest
from ir.autoschedule.autoschedule import autoschedule
from ir.machine import Machine, Space, Unit
from ir.parse.parse import parse_spec
from ir.print import spec_text
from ir.reference.reference import evaluate_storage
from machines.tiles.tiles import TILES
from search.core.candidate import Candidate, Origin
from search.evaluator.sandbox import Limits
from search.evaluator.stages import Bench

SPEC = parse_spec(
    '''def scale(x: f32[M], g: f32[M]) -> f32[M]:
    """Multiply."""
    y[m] = x[m] * g[m]
    return y
'''
)
CHIP = Machine(
    name="chip",
    title="A chip",
    backends=("tongue",),
    levels={"grid": 4},
    spaces={"global": Space(1 << 30, 1e9), "local": Space(1 << 16)},
    units={"vector": Unit({"f32": 1e9})},
    model=TILES,
)
LIMITS = Limits(  # only a hang takes so long
    seconds=1800.0, memory=2 << 30, file=1 << 20, total=512 << 20, processes=64
)
HASTY = replace(LIMITS, seconds=2.0)
HOURS = 7200  # seconds; longer than any test
OUTSIDE = Path("/tmp/speciate-local-test-outside")
MANIFEST = Manifest(
    name="tongue",
    title="For tests",
    language="text",
    extension="txt",
    object="tongue:Tongue",
    correct_by=("emulator",),
    time_kind=("modelled",),
    dtypes=("f32",),
    toolchain="none",
    verbs=(),
)


class Tongue:
    """A backend whose kernels do what their source says, at the stage that it says."""

    manifest = MANIFEST

    def emit(self, nest, machine):
        return "good"

    def admit(self, source):
        """Admits everything, because tests check the other barriers."""

    def build(self, source, nest, machine, folder):
        if source == "no build":
            raise BackendError("build", "line 1: syntax error")
        if source == "slow build":
            subprocess.run(["sleep", str(HOURS)])
        (folder / "kernel.txt").write_text(source)
        return Built(folder / "kernel.txt", {"registers": 7.0}, "ab12")

    def run(self, built, nest, machine, sizes, inputs):
        act = ACTS.get(built.file.read_text().partition(" ")[0])
        if act:
            act(built.file.read_text())
        right = evaluate_storage(nest.spec, inputs, sizes)
        return {n: a + 1 for n, a in right.items()} if act is off else dict(right)

    def time(self, built, nest, machine, sizes, inputs):
        us = float("nan") if built.file.read_text() == "timeless" else 5.0
        return Timing(us, "modelled", {"cycles": 9.0}, {"vector": 0.5})

    def available(self, machine):
        return {"correct_by": "emulator", "time_kind": "modelled", "why": ""}


class Lasting(Tongue):
    """A process may evaluate several candidates. Each build counts the builds of its process."""

    built = 0

    def build(self, source, nest, machine, folder):
        self.built += 1
        return replace(super().build(source, nest, machine, folder), figures={"built": self.built})

    def available(self, machine):
        return super().available(machine) | {"lasting": True}


class Opening(Lasting):
    """Records in each build's figures whether its process was open before the first candidate."""

    opened = 0

    def open(self, machine):
        if machine.title == "broken":
            raise OSError("no device answers")
        self.opened += 1

    def build(self, source, nest, machine, folder):
        found = super().build(source, nest, machine, folder)
        return replace(found, figures={"built": self.built, "opened": self.opened})


class Sleeping(Opening):
    """Its device does not open while a file exists."""

    def __init__(self, file):
        self.file = file

    def open(self, machine):
        while Path(self.file).exists():
            time.sleep(0.02)
        super().open(machine)


class Glancing(Lasting):
    """Each candidate takes 9 us on a device, and a glance returns `shown`."""

    def __init__(self, shown=9.0, **can):
        self.shown, self.can, self.runs, self.enough = shown, can, 0, []

    def run(self, built, nest, machine, sizes, inputs):
        self.runs += 1
        return super().run(built, nest, machine, sizes, inputs)

    def glance(self, built, nest, machine, sizes, inputs, enough_us):
        self.enough.append(enough_us)
        return self.shown

    def time(self, built, nest, machine, sizes, inputs):
        outputs = super().run(built, nest, machine, sizes, inputs)
        return Timing(9.0, self.available(machine)["time_kind"], outputs=outputs)

    def available(self, machine):
        device = {"correct_by": "device", "time_kind": "measured"}
        return super().available(machine) | device | self.can


class Apart(Tongue):
    """Runs its kernels apart. "held" reports the secrets in the memory of the process that runs
    it."""

    def run(self, built, nest, machine, sizes, inputs):
        source = built.file.read_text()
        source = "held" if source == self.emit(nest, machine) else source
        more = {"seconds": 1800.0, "stage": "check", "folder": built.file.parent}
        held = apart(acted, source, **more)
        if held:
            raise BackendError("check", f"its memory has {held}")
        return super().run(replace(built, file=self._good(built)), nest, machine, sizes, inputs)

    def _good(self, built):
        file = built.file.with_name("good.txt")
        file.write_text("good")
        return file

    def available(self, machine):
        return super().available(machine) | {"apart": True}


def acted(place, source):
    """Acts as a source says. Returns the secrets in this process's memory if it asks for them."""
    act = ACTS.get(source.partition(" ")[0])
    if act:
        act(source)
    return secrets_held() if source == "held" else []


def secrets_held():
    """The values of `secret_of_a_test` that this process's memory holds. The pattern is split here,
    because this text is in memory too."""
    form = re.compile(b"speciate" + b"-of-a-test-" + rb"[0-9a-f]{16}")
    found = set()
    with open("/proc/self/mem", "rb", buffering=0) as memory:
        for line in Path("/proc/self/maps").read_text().splitlines():
            ends, rights, *_ = line.split()
            if "r" not in rights or "[v" in line:
                continue
            first, last = (int(end, 16) for end in ends.split("-"))
            try:
                memory.seek(first)
                found |= {word.decode() for word in form.findall(memory.read(last - first))}
            except (OSError, ValueError, OverflowError):
                continue
    return sorted(found)


def secret_of_a_test():
    return "speciate" + "-of-a-test-" + os.urandom(8).hex()


class Busy(Lasting):
    """Each build takes some processor time."""

    def build(self, source, nest, machine, folder):
        end = time.process_time() + 0.2
        while time.process_time() < end:
            pass
        return super().build(source, nest, machine, folder)


class Mute(Tongue):
    """A backend that cannot do anything on this machine."""

    def available(self, machine):
        return {"correct_by": None, "time_kind": None, "why": "no device"}


def off(source):
    """Makes results off by one."""


def loop(source):
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 60))
    while True:
        pass


def eat(source):
    kept = []
    while True:
        kept.append(np.empty(1 << 24))


def swarm(source):
    """Starts many processes with little memory each."""
    for _ in range(24):
        if os.fork() == 0:
            kept = [os.urandom(32 << 20)]
            time.sleep(HOURS * len(kept))
    os.wait()
    os.abort()


def multiply(source):
    """Starts processes up to the limit."""
    while True:
        if os.fork() == 0:
            time.sleep(HOURS)


def abort(source):
    os.write(2, b"terminate called after throwing an instance of 'std::bad_alloc'\n")
    os.abort()


def segfault(source):
    ctypes.string_at(0)


def write(source):
    OUTSIDE.write_text("it got out")


def fill(source):
    Path("large").write_bytes(bytes(1 << 21))


def connect(source):
    socket.create_connection(("127.0.0.1", int(source.split()[1])), 1)


def leave(source):
    os._exit(0)


def close(source):
    os.closerange(3, 4096)
    time.sleep(HOURS)


def forge(source):
    for number in range(3, 1024):
        try:
            os.write(number, b"outcome {}\n")
        except OSError:
            continue


def flood(source):
    while True:
        for number in range(3, 1024):
            try:
                os.write(number, b"x" * 65536)
            except OSError:
                continue


def kill(source):
    os.kill(os.getppid(), signal.SIGKILL)


def spawn(source):
    """Leaves a process in its own session, which is visible by its command line."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execvp("sleep", ["sleep", source.split()[1]])
        os._exit(0)


def wait(source):
    subprocess.run(["sleep", source.split()[1]])


def look(source):
    found = Path("/proc/self/environ").read_bytes().decode() + str(dict(os.environ))
    if source.split()[1] in found:
        raise RuntimeError("it has read a key")


def divide(source):
    return 1 / 0


ACTS = {
    act.__name__: act
    for act in (
        off,
        loop,
        eat,
        swarm,
        multiply,
        abort,
        segfault,
        write,
        fill,
        connect,
        leave,
        close,
        forge,
        flood,
        kill,
        spawn,
        wait,
        look,
        divide,
    )
}


def candidate(source, schedule=None, origin=Origin("given")):
    text = str(autoschedule(SPEC, CHIP, {"M": 64})) if schedule is None else schedule
    return Candidate(spec_text(SPEC), text, "chip", "tongue", source, origin)


def bench(backend=Tongue, **more):
    more = {"checks": ({"M": 1}, {"M": 7}), "limits": LIMITS, **more}
    return Bench(spec_text(SPEC), CHIP, backend, {"M": 64}, **more)


def outcomes(evaluator, *sources):
    asked = [candidate(s) for s in sources]
    return [o for _, o in sorted(evaluator.evaluate(asked), key=lambda found: found[0])]
