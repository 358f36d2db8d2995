"""A kernel in a shared library, called with the arguments of `prelude/launch.h` in a separate
process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from backends.backend import BackendError, Built, Sizes
from backends.caged.frames import Malformed
from backends.caged.memory import ALIGNED, WORD, Segment
from backends.caged.native import Call, Native, native
from backends.caged.process import Died
from backends.shared.arrays import Fenced, fenced_bytes, on_device
from backends.shared.launches import Call as Launch
from backends.shared.launches import calls
from backends.shared.names import Names
from ir.nest.nest import LoopNest
from ir.sizes import bind

WANTED = ("libm.so.6", "libstdc++.so.6", "libgomp.so.1")  # libraries that kernels are linked with


@dataclass(frozen=True, slots=True)
class Loaded:
    """A loaded kernel with its tensors."""

    code: Native
    # sets of tensors: each has its own outputs; inputs are shared
    sets: Sequence[Mapping[str, Fenced]]
    # for each set, the name and the call of each launch
    calls: Sequence[Sequence[tuple[str, Call]]]

    def seconds(self, *wanted: Call) -> float:
        """The seconds of some calls, by the clock of the kernel's process."""
        return self.code.seconds(*wanted)

    def together(self, number: int = 0) -> list[Call]:
        """All launches on a set of tensors, in order."""
        return [call for _, call in self.calls[number]]


@contextmanager
def loaded(
    built: Built,
    names: Names,
    nest: LoopNest,
    sizes: Sizes,
    given: Mapping[str, np.ndarray],
    threads: int,
    count: int = 1,
) -> Iterator[Loaded]:
    """A context with a kernel in a new process, which has only the kernel's tensors.

    given: the inputs, in the device's form. threads: largest number of threads. count: sets of
    tensors. Raises BackendError("check") if the library lacks a launch, or if the process ends.
    """
    first, *more = on_device(nest, sizes, given, count)
    every = [*first.values(), *(array for own in more for array in own.values())]
    launches = calls(nest, bind(nest.spec, sizes))
    memory = Segment(sum(_bytes(a) for a in every) + count * sum(map(_bytes_of_call, launches)))
    tensors = {name: Fenced(array, memory.room) for name, array in first.items()}
    others = [
        {**tensors, **{n: Fenced(array, memory.room) for n, array in own.items()}} for own in more
    ]
    try:
        with native(built.file, memory, WANTED, threads=True) as code:
            functions = sorted({names.launch(launch.launch) for launch in launches})
            if wrong := code.load(functions, texts=False):
                raise BackendError("check", wrong)
            sets = [tensors, *others]
            made = [
                [(one.launch, _call(code, memory, names, one, held, threads)) for one in launches]
                for held in sets
            ]
            yield Loaded(code, sets, made)
    except Died as died:
        raise BackendError("check", str(died), died.kind) from None
    except Malformed as error:
        raise BackendError("check", str(error), "crash") from None


def _bytes(array: np.ndarray) -> int:
    return fenced_bytes(array.nbytes) + ALIGNED


def _bytes_of_call(launch: Launch) -> int:
    return WORD * (len(launch.tensors) + len(launch.sizes) + 3) + 5 * ALIGNED


def _call(
    code: Native,
    memory: Segment,
    names: Names,
    launch: Launch,
    tensors: Mapping[str, Fenced],
    threads: int,
) -> Call:
    """A launch with `Args` of `prelude/launch.h`."""
    pointers = [code.address(t.array) for t in tensors.values()]
    own = memory.words([pointers[n] for n in launch.tensors])
    numbers = memory.words([n & (2**64 - 1) for n in launch.sizes])
    args = memory.words([code.address(own), code.address(numbers), threads])
    return Call(names.launch(launch.launch), (code.address(args),))
