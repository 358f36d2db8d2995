"""A manifest: facts that shared code needs of a backend, read from its `backend.toml`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Any

from backends.backend import BackendError
from ir.errors import KernelError
from ir.machine import ENGINES, MOVES, NOTED, WINDOW, Rendering
from ir.provenance import CORRECT_BY, TIME_KINDS
from ir.source import near
from ir.spec import DTYPES

if TYPE_CHECKING:
    from ir.nest.nest import LoopNest

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_EXTENSION = re.compile(r"[a-z0-9]+(\.[a-z0-9]+)*")
_OBJECT = re.compile(r"([a-z_][a-z0-9_]*):([A-Za-z_][A-Za-z0-9_]*)")
# Features of the language that a backend may refuse; the conformance suite has cases of each
FEATURES = (
    *("function", "integer", "random", "long constant", "reduction", "scan", "gather", "window"),
    *(
        "jagged",
        "search",
        "matmul",
        "scatter",
        "atomic",
        "recurrence",
        "mapping",
        "staging",
        "names",
        "part",
    ),
)
_WORDS = (
    "correct_by",
    "time_kind",
    "dtypes",
    "verbs",
    "refuses",
    "tried_on",
    "hints_of",
    "engines",
    "prefers",
)  # fields that are lists
STAGES_OF = ("tensor", "loop")
KINDS = (
    "recurrence",
    "epilogue",
    "window",
    "turns",
)  # kinds of kernels that a backend may make in another backend's networks
_GUIDE = "docs/add_a_backend.md lists the fields of a backend.toml"


@dataclass(frozen=True, slots=True)
class Manifest:
    """The facts of a backend. They are validated on construction; KernelError names the wrong field."""

    name: str  # its folder
    title: str  # for people
    language: str  # of its sources
    extension: str  # of a source file, without a dot
    # `module:Class` in its folder. The class is called with this manifest and makes the `Backend`.
    object: str
    # How results are checked and times are obtained, best first.
    correct_by: tuple[str, ...]
    time_kind: tuple[str, ...]
    dtypes: tuple[str, ...]  # that its kernels can hold
    toolchain: str  # required, for people
    # The verbs that it renders of those that a loop nest only records (`ir.machine.NOTED`); it
    # rejects schedules with others.
    verbs: tuple[str, ...]
    # Whether pipeline stages are per tensor or per loop.
    stages_of: str = "tensor"
    hints_of: tuple[str, ...] = ("access",)  # which of `ir.machine.MOVES` take cache hints
    # The DMA engines that it supports, of `ir.machine.ENGINES`
    engines: tuple[str, ...] = ("bulk",)
    scales: bool = False  # whether it has block-scaled matrix instructions
    # Whether loop-invariant operands are computed before the loop. Otherwise they are computed
    # where they are used, and a compiler may hoist them.
    hoists: bool = False
    refuses: tuple[str, ...] = ()  # those of `FEATURES` that its `emit` refuses
    # Kinds of kernels (`KINDS`) that it makes in networks of a target's first backend, because they
    # were measured faster (`backends/shares.py`).
    prefers: tuple[str, ...] = ()
    # Targets that the language suite runs on, one of each kind; empty: all.
    tried_on: tuple[str, ...] = ()
    imported: bool = True  # for sources in Python: whether a module of a user calls them on tensors
    for_tests: bool = False  # says nothing about real kernels, so it is never a default
    # `module:function` that validates the backend's own table of a target file
    # (`machines/fields/fields.py`); empty: no table.
    table: str = ""
    # `module:function` that compiles a source file alone, at its tuned sizes, to a file that a
    # device loads: (file, machine, to). Empty: sources are compiled with their nests only.
    compile: str = ""

    def __post_init__(self) -> None:
        _require_text(self, "name", _NAME, "lower case letters, digits and _")
        _require_text(self, "extension", _EXTENSION, "an extension without a dot")
        _require_text(self, "object", _OBJECT, "`module:Class`")
        for name in ("table", "compile"):
            if getattr(self, name) != "":
                _require_text(self, name, _OBJECT, "`module:function`")
        for name in ("title", "language", "toolchain"):
            _require_text(self, name, re.compile(r"(?s).*\S.*"), "a text")
        _require_words(self, "correct_by", CORRECT_BY)
        _require_words(self, "time_kind", TIME_KINDS)
        _require_words(self, "dtypes", tuple(DTYPES))
        if self.verbs != ():
            _require_words(self, "verbs", NOTED)
        if self.stages_of not in STAGES_OF:
            raise _fault("stages_of", f"is {self.stages_of!r}", " or ".join(STAGES_OF))
        _require_words(self, "hints_of", MOVES)
        _require_words(self, "engines", (*ENGINES, WINDOW))
        if self.refuses:
            _require_words(self, "refuses", FEATURES)
        if self.prefers:
            _require_words(self, "prefers", KINDS)
        for name in ("for_tests", "scales", "hoists"):
            if not isinstance(value := getattr(self, name), bool):
                raise _fault(name, f"is {value!r}", "true or false")

    @property
    def rendering(self) -> Rendering:
        """What it renders of a schedule."""
        moves, parts = (self.stages_of, self.hints_of, self.engines), "part" not in self.refuses
        return Rendering(self.name, self.verbs, *moves, self.scales, self.hoists, parts)

    def require_dtypes(self, nest: LoopNest, others: tuple[str, ...] = ()) -> None:
        """Raises BackendError("emit") at a tensor dtype that the backend's kernels cannot hold.
        others: dtypes that have the memory representation of a supported one."""
        for dtype in (p.dtype for launch in nest.launches for p in launch.parameters):
            if dtype not in (*self.dtypes, *others):
                held = ", ".join(self.dtypes)
                reason = f"tensors of {dtype} are not held here; these are: {held}"
                raise BackendError("emit", reason)


def manifest(table: Mapping[str, Any], where: str = "") -> Manifest:
    """A manifest from the table of a `backend.toml`. In place of a list of one word, the table may
    have the word.

    Raises KernelError, with `where`, for a field that is missing, unknown or wrong.
    """
    known = {f.name: f.default for f in fields(Manifest)}
    try:
        for name in table:
            if name not in known:
                hint = near(name, known, _GUIDE)
                raise _fault(name, "is not known", ", ".join(known), hint)
        for name, default in known.items():
            if name not in table and default is MISSING:
                raise _fault(name, "is missing")
        return Manifest(**{name: _words(name, value) for name, value in table.items()})
    except KernelError as e:
        raise e.within(where) from None


def _words(name: str, value: Any) -> Any:
    if name not in _WORDS:
        return value
    if isinstance(value, str):
        return (value,)
    return tuple(value) if isinstance(value, list) else value


def _require_text(made: Manifest, name: str, pattern: re.Pattern, allowed: str) -> None:
    value = getattr(made, name)
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise _fault(name, f"is {value!r}", allowed)


def _require_words(made: Manifest, name: str, known: tuple[str, ...]) -> None:
    value = getattr(made, name)
    if not isinstance(value, tuple) or not value or len(set(value)) != len(value):
        raise _fault(name, f"is {value!r}", f"one or more of {', '.join(known)}")
    for word in value:
        if word not in known:
            raise _fault(name, f"has {word!r}", ", ".join(known))


def _fault(name: str, what: str, allowed: str = "", hint: str = _GUIDE) -> KernelError:
    return KernelError(f"field `{name}` {what}", allowed=allowed, hint=hint)
