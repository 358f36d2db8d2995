"""The contract of a backend: emit, build, run, time; honest about how a result was had."""

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
    """A candidate that a backend could not take through a stage; `reason` is for a person.

    kind: timeout, memory, crash, or machine where it is not the candidate's fault; empty where it
    follows from the stage.
    """

    def __init__(self, stage: str, reason: str, kind: str = ""):
        super().__init__(reason)
        self.stage = stage
        self.reason = reason
        self.kind = kind


class MachineFault(BackendError):
    """What says nothing of a candidate: something of this machine's was killed, or too slow."""

    def __init__(self, stage: str, reason: str):
        super().__init__(stage, reason, "machine")


@dataclass(frozen=True, slots=True)
class Built:
    """What a build left behind."""

    file: Path  # what is run
    figures: Mapping[str, float] = field(default_factory=dict)  # static facts (registers, bytes)
    # Of the code object that runs at the tuned sizes; empty where a build makes none.
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class Timing:
    """How long a kernel takes at given sizes."""

    us: float  # microseconds (a median where it is measured)
    kind: str  # one of `ir.provenance.TIME_KINDS`
    # By name, such as cycles and bytes by space. Where known, `busy_memory`, `busy_vector` and
    # `busy_matrix` are the share of the time in which memory and the busiest engine of that kind
    # were busy.
    figures: Mapping[str, float] = field(default_factory=dict)
    engines: Mapping[str, float] = field(default_factory=dict)  # the busy share of each, 0 to 1
    # By name, what a timed call gave for the inputs: always where the time is measured, else where
    # a run of its own was made for it. As of `Backend.run`.
    outputs: Arrays = field(default_factory=dict, compare=False, repr=False)


@runtime_checkable
class Held(Protocol):
    """A large output that stays on a device, in place of an array: little of it is compared."""

    shape: tuple[int, ...]
    dtype: np.dtype

    def take(self, at: np.ndarray, axis: int) -> Any:
        """What lies at positions of an axis, held too."""

    def same_bits(self, other: Any) -> bool:
        """Whether another one of this shape and dtype holds the same bits."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """All of it, as an array."""


class Backend(Protocol):
    """A language with its toolchain. One object serves all targets that list the backend.

    Every method takes the machine, keeps no state between calls, writes only under the folder
    it is given, and raises BackendError for a fault of the candidate.
    """

    manifest: Manifest

    def emit(self, nest: LoopNest, machine: Machine) -> str:
        """The source text of a nest, the same for the same nest."""

    def build(self, source: str, nest: LoopNest, machine: Machine, folder: Path) -> Built:
        """Compiles a source under `folder`. nest: what the source is for; its sizes are those
        that it is tuned for."""

    def run(
        self, built: Built, nest: LoopNest, machine: Machine, sizes: Sizes, inputs: Arrays
    ) -> dict[str, np.ndarray]:
        """The outputs for the inputs, from buffers that were poisoned before; what is made of `Formulas` may
        be `Held`."""

    def time(
        self, built: Built, nest: LoopNest, machine: Machine, sizes: Sizes, inputs: Arrays
    ) -> Timing:
        """How long the kernel takes; how that is known is in the result."""

    def profile(
        self,
        built: Built,
        nest: LoopNest,
        machine: Machine,
        sizes: Sizes,
        inputs: Arrays,
        trace: Path,
    ) -> Timing:
        """As `time`, and writes a timeline (Chrome's trace format) to `trace`."""

    def available(self, machine: Machine) -> Mapping[str, Any]:
        """What can be done here: {"correct_by": word or None, "time_kind": word or None,
        "why": what is lacking, "toolchain": its name and version}. "device", "driver": of a device,
        their names and versions; times are compared where they are equal. "own_cores": True where times
        are measured on the cores of this machine, so that builds would disturb them. "own_turns": True
        where nobody else uses the device while `time` measures, without a caller's doing. "lasting": True
        where one process may build, run and time one kernel after another. "apart": True where a kernel's own
        code is compiled or interpreted by `backends.gpu.apart`, so that a clean process can do it."""


@runtime_checkable
class Admits(Protocol):
    """A backend that takes sources which somebody else wrote; one without has none but its own."""

    def admit(self, source: str) -> None:
        """BackendError("build") at the first thing in a source that is more than kernels may be. `build`
        does so, too, before anything else looks at the source."""


@runtime_checkable
class CountsSource(Protocol):
    """A backend that can tell from a source text, as one edited by hand, what it does."""

    def static_figures(self, source: str) -> Mapping[str, float]:
        """Those facts of `ir.estimate.kernel_features` that the text shows, by the same names; none
        where it cannot be read."""


@runtime_checkable
class Hosted(Protocol):
    """A backend whose sources have host code that users call and no evaluation runs."""

    def require_host(self, source: str, emitted: str) -> None:
        """BackendError("build") where that code of a source is not what is emitted for its nest: nothing
        would say whether it is right."""


@runtime_checkable
class Warms(Protocol):
    """A backend that can do beforehand what each build and run in a child would do again."""

    def warm(self, machine: Machine) -> None:
        """Does it once in this process, for the children that it forks later."""


@runtime_checkable
class ModelsTime(Protocol):
    """A backend with a model of the time that its kernels take, where no device is."""

    def model(
        self, nest: LoopNest, machine: Machine, sizes: Sizes, figures: Mapping[str, float]
    ) -> Timing:
        """The modelled time with the terms of the model. figures: of a build; none where the nest was
        not built."""


@runtime_checkable
class Glances(Protocol):
    """A backend that can tell quickly about how long a kernel takes, where times are measured."""

    def glance(
        self,
        built: Built,
        nest: LoopNest,
        machine: Machine,
        sizes: Sizes,
        inputs: Arrays,
        enough_us: float,
    ) -> float:
        """About how many microseconds a call takes on the device, of a few calls; nothing of what they
        give is compared. enough_us: what takes longer need not be known well."""


@runtime_checkable
class Opens(Protocol):
    """A backend whose processes open a device, which takes longer than a kernel does."""

    def open(self, machine: Machine) -> None:
        """Opens it in this process, where it is here, before the first kernel is run. Nothing may be forked
        afterwards that uses the device."""


@runtime_checkable
class CompilesAhead(Protocol):
    """A backend that compiles a kernel anew at sizes other than those of its build: a run there does so by
    itself, one after another."""

    def compile_at(
        self, built: Built, nest: LoopNest, machine: Machine, every: Sequence[Sizes]
    ) -> None:
        """Compiles what runs at some sizes need, several at a time; nothing where runs need no compiler
        here. BackendError("build") as of `build`."""


@runtime_checkable
class LeavesInputs(Protocol):
    """A backend some of whose kernels cannot change the arrays that they are run on."""

    def leaves_inputs(self, machine: Machine) -> bool:
        """Whether those of a machine cannot, as they have copies on a device: `run` and `time` may be given
        arrays that cannot be written, and keep what they make of these."""


@runtime_checkable
class Enqueues(Protocol):
    """A backend whose kernels run on torch tensors on a device."""

    def enqueued(
        self, built: Built, nest: LoopNest, machine: Machine, sizes: Sizes
    ) -> Callable[..., None]:
        """What puts a built kernel into the queue of the device, on contiguous tensors there, in the
        order of the nest's parameters: inputs, workspace, outputs."""


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
    """A backend whose code runs on another computer than the one that built it, where its compiler
    may be missing."""

    def complete(
        self, built: Built, nest: LoopNest, machine: Machine, every: Sequence[Sizes]
    ) -> Mapping[str, str]:
        """Makes the code for some sizes beside what was built; sha256 of each code object by its
        file's name."""

    def present(self, machine: Machine) -> str:
        """Why code for the machine cannot run in this computer; empty where it can."""


@runtime_checkable
class Exports(Protocol):
    """A backend whose kernels programs without Python launch."""

    def exported(
        self, built: Built, nest: LoopNest, machine: Machine, sizes: Sizes
    ) -> Mapping[str, str]:
        """Texts by the names of their files, which launch what was built at sizes: a header in C first,
        then a source."""


@runtime_checkable
class ShowsLevels(Protocol):
    """A backend that lowers a nest through levels of its own before it emits."""

    def levels(self, nest: LoopNest, machine: Machine) -> Mapping[str, str]:
        """The text of each level between loop nest and source by its name, the nest's side first."""


@runtime_checkable
class Drafts(Protocol):
    """A backend that can run a source without its compiler, which takes long."""

    def draft(self, source: str, nest: LoopNest, machine: Machine, folder: Path) -> Built:
        """As `build` where that is needed to run; else what `run` needs of a source and no more."""


@runtime_checkable
class DescribesSources(Protocol):
    """A backend that can tell a person, or a model, what a source of it may use."""

    def interface(self, machine: Machine) -> str:
        """In Markdown, without a title: the rules of admission, every function with its declaration,
        and examples. It is made from what the backend itself admits and compiles."""


@runtime_checkable
class Reserves(Protocol):
    """A backend whose texts have words of their own, which a kernel's names may be too."""

    def words(self) -> Collection[str]:
        """Keywords of its language and names that its texts use."""
