"""A document of the knowledge base: a header that is read strictly, a title, and the text.

    <!-- document
    kind = "hardware"
    machines = ["gfx942"]
    operations = ["product"]
    about = ["product"]
    surfaces = ["schedule", "source"]
    tags = ["registers", "occupancy"]
    sources = ["ir/machine.py"]
    -->

    # Title

    The first sentence says what the document is about; the index shows it. ...

The header is TOML in a comment, so that the file reads well where Markdown is shown.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ir.errors import KernelError
from ir.source import near
from search.core.toml_text import toml_text
from search.prompt.operations import OPERATIONS

KINDS = ("constraints", "hardware", "guidance", "idioms", "skill")
_OPEN, _CLOSE = "<!-- document\n", "\n-->\n"
SURFACES = ("schedule", "equations", "source")
_LISTS = ("machines", "operations", "about", "surfaces", "leads", "tags", "sources")
_KNOWN = ("kind", *_LISTS, "provenance", "verbs")
_PROVENANCE = ("run", "kernel", "target", "backend", "date", "evaluations", "time_kind")
_COUNTS = ("tries", "faster", "failed", "speedup")  # counts of a verb in a skill
_SENTENCE = re.compile(r"(?<=[.!?])\s")
_FORM = "`<!-- document`, lines of TOML, `-->`, an empty line, `# Title`, an empty line, text"


@dataclass(frozen=True, slots=True)
class Document:
    """A text of the knowledge base. Raises KernelError with the fault when it is made from invalid
    values."""

    name: str  # file name without suffix
    kind: str
    title: str
    body: str
    sources: tuple[str, ...]  # files of this repository, or titles of public documents
    tags: tuple[str, ...] = ()
    # Words of which a machine must have one (see `retrieval.machine_words`); empty: any machine.
    machines: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()  # kinds of operations in it (`operations.OPERATIONS`)
    # The kinds that it is for: kernels without any of them do not get it. Empty: for all kernels.
    about: tuple[str, ...] = ()
    surfaces: tuple[str, ...] = SURFACES  # surfaces of edits that it helps with
    leads: tuple[str, ...] = ()  # surfaces of which every edit needs it
    # For a skill only: its origin, and the counts of each verb (see `lesson`).
    provenance: Mapping[str, Any] = field(default_factory=dict)
    verbs: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise _fault("kind", f"is {self.kind!r}", ", ".join(KINDS), near(self.kind, KINDS, ""))
        for word in self.operations:
            if word not in OPERATIONS:
                allowed = ", ".join(OPERATIONS)
                raise _fault("operations", f"has {word!r}", allowed, near(word, OPERATIONS, ""))
        for word in self.about:
            if word not in self.operations:
                allowed = ", ".join(self.operations)
                raise _fault("about", f"has {word!r}", allowed, near(word, self.operations, ""))
        for name, known in (("surfaces", SURFACES), ("leads", self.surfaces)):
            for word in getattr(self, name):
                if word not in known:
                    raise _fault(name, f"has {word!r}", ", ".join(known), near(word, known, ""))
        if not self.surfaces:
            raise _fault("surfaces", "is empty", ", ".join(SURFACES))
        for name in ("machines", "tags"):
            for word in getattr(self, name):
                if not re.fullmatch(r"[a-z0-9][a-z0-9_ -]*", word):
                    raise _fault(name, f"has {word!r}", "words in lower case")
        if not self.sources:
            raise _fault("sources", "is empty", hint="say where the figures are from")
        if bool(self.provenance) != (self.kind == "skill"):
            raise _fault("provenance", "goes with kind `skill`, and only with it")
        for name in _PROVENANCE if self.provenance else ():
            if name not in self.provenance:
                raise _fault("provenance", f"lacks `{name}`", ", ".join(_PROVENANCE))
        for verb, counts in self.verbs.items():
            if not _numbers(counts):
                raise _fault("verbs", f"has {counts!r} for `{verb}`", ", ".join(_COUNTS))
        if not self.summary:
            raise KernelError("the document has no text below its title", allowed=_FORM)

    @property
    def summary(self) -> str:
        """The first sentence of the text, on one line."""
        first = self.body.strip().partition("\n\n")[0]
        return _SENTENCE.split(" ".join(first.split()))[0]

    @property
    def entry(self) -> str:
        """The document's line in an index: name, kind, tags, title and first sentence."""
        words = ", ".join((*self.operations, *self.tags))
        return f"{self.name} ({self.kind}; {words}): {self.title}. {self.summary}"

    @property
    def text(self) -> str:
        """Title and text, as a prompt shows them."""
        return f"# {self.title}\n\n{self.body.strip()}\n"

    @property
    def file_text(self) -> str:
        """The whole file. `document` gives an equal value back."""
        header: dict[str, Any] = {"kind": self.kind}
        lists = {name: getattr(self, name) for name in _LISTS}
        lists |= {"surfaces": ()} if self.surfaces == SURFACES else {}
        header |= {name: list(v) for name, v in lists.items() if v}
        header |= {"provenance": dict(self.provenance)} if self.provenance else {}
        header |= {"verbs": {k: dict(v) for k, v in self.verbs.items()}} if self.verbs else {}
        return f"{_OPEN}{toml_text(header).rstrip()}{_CLOSE}\n{self.text}"


def document(name: str, text: str, where: str = "") -> Document:
    """The document in a file's text. Raises KernelError, within `where`, for any fault."""
    try:
        return _document(name, text)
    except KernelError as error:
        raise error.within(where or name) from None


def _document(name: str, text: str) -> Document:
    head, found, rest = text.removeprefix(_OPEN).partition(_CLOSE)
    if not text.startswith(_OPEN) or not found:
        raise KernelError("the text does not begin with a header", allowed=_FORM)
    table = _header(head)
    title, _, body = rest.removeprefix("\n").partition("\n")
    if not rest.startswith("\n# ") or not body.startswith("\n"):
        raise KernelError(f"the header is followed by {rest[:40]!r}", allowed=_FORM)
    lists = {key: tuple(table[key]) for key in _LISTS if key in table}
    lists.setdefault("sources", ())
    return Document(
        name=name,
        kind=table["kind"],
        title=title.removeprefix("# ").strip(),
        body=body.strip() + "\n",
        provenance=table.get("provenance", {}),
        verbs=table.get("verbs", {}),
        **lists,
    )


def _header(text: str) -> Mapping[str, Any]:
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise KernelError(f"the header is not TOML: {error}", allowed=_FORM) from None
    for key, value in table.items():
        if key not in _KNOWN:
            raise _fault(key, "is not known", ", ".join(_KNOWN), near(key, _KNOWN, ""))
        if key in _LISTS and not _words(value):
            raise _fault(key, f"is {value!r}", "a list of texts")
        if key in ("provenance", "verbs") and not isinstance(value, dict):
            raise _fault(key, f"is {value!r}", "a table")
    if not isinstance(table.get("kind"), str):
        raise _fault("kind", "is missing" if "kind" not in table else "is no text")
    return table


def _words(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(v, str) and v.strip() for v in value)


def _numbers(value: Any) -> bool:
    """Whether a value is a valid table of a verb."""
    if not isinstance(value, Mapping) or set(value) != set(_COUNTS):
        return False
    return all(isinstance(v, int | float) and v >= 0 for v in value.values())


def _fault(name: str, what: str, allowed: str = "", hint: str = "") -> KernelError:
    return KernelError(f"field `{name}` {what}", allowed=allowed, hint=hint)
