"""The contract of a backend: emit, build, run, time. A result says how it was obtained."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ir.workload import Sizes

if TYPE_CHECKING:
    import numpy as np

    from backends.manifest import Manifest
    from ir.machine import Machine
    from ir.nest.nest import LoopNest

Arrays = Mapping[str, "np.ndarray"]


class BackendError(Exception):
    """A stage of a backend failed on a candidate. `reason` is for a person.

    kind: timeout, memory, crash, or machine (not the candidate's fault); empty if the stage
    says enough.
    """

    def __init__(self, stage: str, reason: str, kind: str = ""):
        super().__init__(reason)
        self.stage = stage
        self.reason = reason
        self.kind = kind


class MachineFault(BackendError):
    """A failure that says nothing about the candidate: a process of this machine was killed, or was too slow."""

    def __init__(self, stage: str, reason: str):
        super().__init__(stage, reason, "machine")


@dataclass(frozen=True, slots=True)
class Built:
    """The result of a build."""

    file: Path  # the file that is run
    figures: Mapping[str, float] = field(default_factory=dict)  # static facts (registers, bytes)
    # SHA-256 of the code object that runs at the tuned sizes; empty if a build makes none.
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class Timing:
    """The time that a kernel takes at some sizes."""

    us: float  # microseconds; the median if it is measured
    kind: str  # one of `ir.provenance.TIME_KINDS`
    # Figures by name, such as cycles and bytes by memory space. If known, `busy_memory`,
    # `busy_vector` and `busy_matrix` are the shares of the time in which memory and the busiest
    # engine of that kind were busy.
    figures: Mapping[str, float] = field(default_factory=dict)
    # The busy share of each engine, 0 to 1
    engines: Mapping[str, float] = field(default_factory=dict)
    # Outputs of a timed call, by name, as `Backend.run` returns them. Measured times always have
    # them; other times have them only if a separate run was made.
    outputs: Arrays = field(default_factory=dict, compare=False, repr=False)


@runtime_checkable
class Held(Protocol):
    """A large output that stays on a device in place of an array, because only a small part of it is compared."""

    shape: tuple[int, ...]
    dtype: np.dtype

    def take(self, at: np.ndarray, axis: int) -> Any:
        """The elements at some positions of an axis, which also stay on the device."""

    def same_bits(self, other: Any) -> bool:
        """Whether another output of the same shape and dtype has the same bits."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """The whole output as an array."""


class Backend(Protocol):
    """A language with its toolchain. One object serves all targets that list the backend.

    Methods take the machine as an argument, keep no state between calls, and write only below the
    folder that they get. They raise BackendError for a fault of the candidate.
    """

    manifest: Manifest

    def emit(self, nest: LoopNest, machine: Machine) -> str:
        """The source text of a nest. It depends on the nest only."""

    def build(self, source: str, nest: LoopNest, machine: Machine, folder: Path) -> Built:
        """Compiles a source below `folder`. nest: the nest that the source is for; its sizes are
        those that the source is tuned for."""

    def run(
        self, built: Built, nest: LoopNest, machine: Machine, sizes: Sizes, inputs: Arrays
    ) -> dict[str, np.ndarray]:
        """The outputs for the inputs. Output buffers are poisoned before the run. Outputs of
        `Formulas` inputs may be `Held`."""

    def time(
        self, built: Built, nest: LoopNest, machine: Machine, sizes: Sizes, inputs: Arrays
    ) -> Timing:
        """The time that the kernel takes. The result says how it was obtained."""

    def profile(
        self,
        built: Built,
        nest: LoopNest,
        machine: Machine,
        sizes: Sizes,
        inputs: Arrays,
        trace: Path,
    ) -> Timing:
        """The same as `time`; it also writes a timeline (Chrome's trace format) to `trace`."""

    def available(self, machine: Machine) -> Mapping[str, Any]:
        """What is possible on this computer: {"correct_by": word or None, "time_kind": word or
        None, "why": what is missing, "toolchain": its name and version}. Further keys:

        - "device", "driver": names and versions for a device; times are comparable only if they are
          equal.
        - "own_cores": True if times are measured on this computer's CPU cores, so that builds would
          disturb them.
        - "own_turns": True if `time` itself keeps other processes off the device while it measures.
        - "lasting": True if one process may build, run and time one kernel after another.
        - "apart": True if `backends.gpu.apart` compiles or interprets a kernel's own code, so that
          a clean process can do it.
        """


@runtime_checkable
class Admits(Protocol):
    """A backend that accepts sources written by others. Backends without this accept only their own."""

    def admit(self, source: str) -> None:
        """Raises BackendError("build") at the first construct of a source that kernels may not use.
        `build` checks this too, before anything else reads the source."""


@runtime_checkable
class CountsSource(Protocol):
    """A backend that can derive facts from a source text, for example one edited by hand."""

    def static_figures(self, source: str) -> Mapping[str, float]:
        """The facts of `ir.estimate.kernel_features` that the text shows, by the same names; empty
        if it cannot be read."""


@runtime_checkable
class Hosted(Protocol):
    """A backend whose sources have host code that users call and that no evaluation runs."""

    def require_host(self, source: str, emitted: str) -> None:
        """Raises BackendError("build") if a source's host code differs from what is emitted for its
        nest, because no check would find errors in it."""


@runtime_checkable
class Warms(Protocol):
    """A backend with work that would otherwise be repeated for each build and run in a child process."""

    def warm(self, machine: Machine) -> None:
        """Does that work once in this process, for the children that it forks later."""


@runtime_checkable
class ModelsTime(Protocol):
    """A backend with a model of its kernels' time, for use without a device."""

    def model(
        self, nest: LoopNest, machine: Machine, sizes: Sizes, figures: Mapping[str, float]
    ) -> Timing:
        """The modelled time with the terms of the model. figures: of a build; empty if the nest was not built."""


@runtime_checkable
class Glances(Protocol):
    """A backend that can quickly give a rough time of a kernel, if times are measured."""

    def glance(
        self,
        built: Built,
        nest: LoopNest,
        machine: Machine,
        sizes: Sizes,
        inputs: Arrays,
        enough_us: float,
    ) -> float:
        """The rough time of a call on the device in microseconds, from a few calls. Outputs are not
        compared. enough_us: longer times need no precision."""


@runtime_checkable
class Opens(Protocol):
    """A backend whose processes open a device, which takes longer than a kernel."""

    def open(self, machine: Machine) -> None:
        """Opens the device in this process, if there is one, before the first kernel runs. After
        that, no process that uses the device may be forked."""


@runtime_checkable
class CompilesAhead(Protocol):
    """A backend that recompiles a kernel for sizes other than those of its build. Runs do so by
    themselves, one after another."""

    def compile_at(
        self, built: Built, nest: LoopNest, machine: Machine, every: Sequence[Sizes]
    ) -> None:
        """Compiles what runs at some sizes need, several at a time; does nothing if runs need no
        compiler here. BackendError("build") as in `build`."""


@runtime_checkable
class LeavesInputs(Protocol):
    """A backend some of whose kernels cannot modify the arrays that they are run on."""

    def leaves_inputs(self, machine: Machine) -> bool:
        """Whether the kernels of a machine work on device copies and so cannot modify arrays. If
        so, `run` and `time` may get read-only arrays, and may cache what they derive from these."""


@runtime_checkable
class Enqueues(Protocol):
    """A backend whose kernels run on torch tensors on a device."""

    def enqueued(
        self, built: Built, nest: LoopNest, machine: Machine, sizes: Sizes
    ) -> Callable[..., None]:
        """A function that enqueues a built kernel on the device. It takes contiguous tensors there,
        in the order of the nest's parameters: inputs, workspace, outputs."""


@runtime_checkable
class Repeats(Protocol):
    """A backend whose sources Python imports, and whose launches can be made again past what makes the first."""

    def repeats(self) -> str:
        """The text of a module that defines `_LaunchesAgain`, a class with the functions

        - `place()`: the device and the stream of a launch now; None where each launch must be made as the first;
        - `kind(tensors)`: what launches on tensors of known dtypes and shapes depend on;
        - `noted(launch, tensors)`: runs a source's `launch`; what it launched, each as a function of a stream and
          of arguments, with the arguments: the number of a tensor, whose address is given, or None and a value. None
          where that cannot be made again.
        """


@runtime_checkable
class LoadsHere(Protocol):
    """A backend whose builds are libraries that this process calls on tensors in its memory."""

    def library_calls(
        self, built: Built, nest: LoopNest, sizes: Sizes
    ) -> tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...]:
        """The calls in order: the function, the numbers of its tensors among the nest's parameters
        (`backends.parameters`), its sizes."""


@runtime_checkable
class Carries(Protocol):
    """A backend whose code also runs on another computer, which may lack the compiler."""

    def complete(
        self, built: Built, nest: LoopNest, machine: Machine, every: Sequence[Sizes]
    ) -> Mapping[str, str]:
        """Makes the code for some sizes next to what was built. Returns the SHA-256 of each code
        object by its file's name."""

    def present(self, machine: Machine) -> str:
        """Why code for the machine cannot run on this computer; empty if it can."""


@runtime_checkable
class Exports(Protocol):
    """A backend whose kernels can be launched by programs without Python."""

    def exported(
        self, built: Built, nest: LoopNest, machine: Machine, sizes: Sizes
    ) -> Mapping[str, str]:
        """Texts by file name that launch what was built at some sizes: a C header first, then a source."""


@runtime_checkable
class ShowsLevels(Protocol):
    """A backend that lowers a nest through its own levels before it emits."""

    def levels(self, nest: LoopNest, machine: Machine) -> Mapping[str, str]:
        """The text of each level between loop nest and source by its name, from the nest to the source."""


@runtime_checkable
class Drafts(Protocol):
    """A backend that can run a source without its compiler, which is slow."""

    def draft(self, source: str, nest: LoopNest, machine: Machine, folder: Path) -> Built:
        """The same as `build` if running needs a build; otherwise only what `run` needs of a source."""


@runtime_checkable
class DescribesSources(Protocol):
    """A backend that can tell a person, or a model, what its sources may use."""

    def interface(self, machine: Machine) -> str:
        """Markdown without a title: the rules of admission, every function with its declaration,
        and examples. It is derived from what the backend admits and compiles."""


@runtime_checkable
class Reserves(Protocol):
    """A backend whose texts have reserved words, with which a kernel's names may clash."""

    def words(self) -> Collection[str]:
        """Keywords of its language, and names that its texts use."""
