"""The emulator: runs a source as plain C++, with each work-item of a block as a fiber, on arrays in
shared memory.

`native/emulator.h` checks each memory access before it happens. The code still runs in a separate
process, which has only the kernel's tensors.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from backends.backend import BackendError
from backends.caged import native
from backends.caged.frames import Malformed
from backends.caged.memory import ALIGNED, WORD, Segment
from backends.caged.process import Died
from backends.gpu.source.launches import Call
from backends.hip import clang
from backends.hip.ahead import ahead_of_kernels
from backends.shared.arrays import Fenced, fenced_bytes
from ir.digest import text_digest

ORDERS = (False, True)  # of threads, wavefronts and blocks: forward, reversed
_WANTED = ("libm.so.6",)
_MOST_SAID = 400  # characters of a fault


def library(source: Path, names: Iterable[str], constants: Mapping[str, int]) -> Path:
    """The kernels of a source for some constants as a shared library, compiled if it does not
    exist.

    Raises BackendError("build") with the first errors and their lines.
    """
    text = source.read_text(encoding="utf-8")
    entries = "\n".join(_ENTRY.replace("NAME", name) for name in sorted(names))
    defines = [f"-D{n}={v}" for n, v in constants.items()]
    ahead = ahead_of_kernels()
    parts = (ahead.digest, text, entries, *defines)
    file = source.parent / f"{text_digest(chr(0).join(parts))}.so"
    if not file.exists():
        whole = file.with_suffix(".cc")
        whole.write_text(f'#line 1 "{source.name}"\n{text}\n{entries}\n', encoding="utf-8")
        made = file.with_suffix(".o")
        clang.run("clang", *ahead.options, *defines, "-c", str(whole), "-o", str(made))
        clang.run("ld.lld", "-shared", str(made), str(ahead.code), "-o", str(file))
    return file


@dataclass(frozen=True, slots=True)
class Emulation:
    """The kernels of a library with their tensors."""

    code: native.Native
    memory: Segment
    buffers: Mapping[str, Fenced]

    def launch(self, call: Call, reversed_order: bool) -> None:
        """Runs one launch. Raises BackendError("check") with the kernel, the kind of fault, the
        block and the thread."""
        tensors = [self.code.address(b.array) for b in self.buffers.values()]
        values = [tensors[n] for n in call.tensors] + [n & (2**64 - 1) for n in call.arguments]
        held = self.memory.words(values)
        start = self.code.address(held)
        pointers = self.memory.words([start + WORD * n for n in range(len(values))])
        said = self.code.call(
            native.Call(
                f"emulated_{call.name}",
                (call.grid, call.block, call.shared, reversed_order, self.code.address(pointers)),
            )
        )
        if said:
            raise BackendError("check", f"{call.name}: {_fault(said, self.buffers)}")

    def know(self) -> None:
        """Registers the tensors with their names."""
        rows: list[int] = []
        for name, buffer in self.buffers.items():
            text = self.memory.room(len(name.encode()) + 1)
            text[:-1] = np.frombuffer(name.encode(), np.uint8)
            array = buffer.array
            rows += [self.code.address(array), array.nbytes, self.code.address(text)]
        table = self.code.address(self.memory.words(rows))
        self.code.call(native.Call("emulated_tensors", (table, len(self.buffers))))


@contextmanager
def emulation(
    file: Path, calls: Sequence[Call], tensors: Mapping[str, np.ndarray]
) -> Iterator[Emulation]:
    """A context with a library's kernels in a new process.

    tensors: in the device's form, all that a kernel may access; the calls name those of each.
    Raises BackendError("check") if that process ends or sends an invalid reply.
    """
    words = sum(2 * len(c.tensors) + 2 * len(c.arguments) + 4 for c in calls) + 3 * len(tensors) + 1
    size = WORD * words + ALIGNED * (3 * len(calls) + 3 * len(tensors) + 1)
    size += sum(fenced_bytes(a.nbytes) + len(name.encode()) + 1 for name, a in tensors.items())
    memory = Segment(size)
    buffers = {name: Fenced(array, memory.room) for name, array in tensors.items()}
    names = {f"emulated_{call.name}" for call in calls}
    try:
        with native.native(file, memory, _WANTED) as code:
            if wrong := code.load(("emulated_tensors", *sorted(names))):
                raise BackendError("check", wrong)
            made = Emulation(code, memory, buffers)
            made.know()
            yield made
    except Died as died:
        raise BackendError("check", str(died), died.kind) from None
    except Malformed as error:
        raise BackendError("check", str(error), "crash") from None


def _fault(said: str, tensors: Iterable[str]) -> str:
    """The emulator's message, if it has only words of its own messages. It comes from the kernel's
    process, and a model may read it, so it is not trusted."""
    known = _words() | set(tensors)
    if len(said) <= _MOST_SAID and all(w in known for w in re.findall(r"[^\W\d]\w*", said)):
        return said
    return "it stopped, and what it says is no message of the emulator"


@cache
def _words() -> frozenset[str]:
    """The words of the emulator's messages."""
    files = (clang.NATIVE / name for name in ("emulator.h", "runtime.h"))
    text = "\n".join(file.read_text(encoding="utf-8") for file in files)
    return frozenset(
        w for t in re.findall(r'"([^"\n]*)"', text) for w in re.findall(r"[^\W\d]\w*", t)
    )


_ENTRY = """
extern "C" EXPORTED HIDDEN const char* emulated_NAME(int grid, int block, int shared, int reversed, void** given) {
  return emulated::launched(NAME, grid, block, shared, reversed, given);
}
"""
