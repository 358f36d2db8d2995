"""Emission: renders the templates of a backend, deterministically.

This is the only module of backends that uses the template engine. Undefined names in a template are
errors. Templates can reach neither random numbers nor the time of day.
"""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import jinja2
from jinja2.bccache import Bucket
from jinja2.compiler import CodeGenerator

from backends.backend import BackendError
from ir.digest import text_digest

TEMPLATES = Path(__file__).parent.parent / "templates"
BUILT = Path(__file__).parent / "compiled_templates"  # templates that the build compiled
_ENDING = "*.j2"
_OPTIONS: dict[str, Any] = dict(
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
    autoescape=False,
    auto_reload=False,
    optimized=False,
)
_SHARED = re.compile(r"""\{%-?\s*(?:from|import|include|extends)\s+["'](\w+/[^"']+)["']""")
_FAULTS = (
    *(jinja2.TemplateError, TypeError, ValueError, LookupError),
    *(AttributeError, ArithmeticError, AssertionError),
)


class _Speller:
    """Spells a node by the macro for its type. Nodes share parts, so each is spelled once per rendering."""

    __slots__ = ("macros", "texts")

    def __init__(self, macros: Mapping[str, Callable[..., str]]):
        self.macros = macros
        self.texts: dict[tuple[Any, ...], tuple[object, str]] = {}

    def add(self, macros: Mapping[str, Callable[..., str]]) -> _Speller:
        """Adds macros for more types of nodes, those of one language, and returns itself. They
        override shared macros of the same name."""
        self.macros = {**self.macros, **macros}
        return self

    def __call__(self, node: object, *words: Any) -> str:
        # Keyed by identity, because equal nodes may have different texts, such as 1 and True.
        # Holding the node keeps its address from being reused.
        key = (id(node), *words)
        found = self.texts.get(key)
        if found is None:
            found = self.texts[key] = (node, self.macros[type(node).__name__](node, *words))
        return found[1]


class _Unfolded(CodeGenerator):
    """Generates code that depends on the template's text only: it calls no filter at compile time."""

    def _output_child_to_const(self, node: Any, frame: Any, finalize: Any) -> str:
        if not isinstance(node, jinja2.nodes.TemplateData):
            raise jinja2.nodes.Impossible
        return super()._output_child_to_const(node, frame, finalize)


class _Environment(jinja2.Environment):
    """The environment of a backend's templates and the shared ones, both below `folder`."""

    code_generator_class = _Unfolded

    def __init__(self, backend: str, folder: Path, compiled: _Compiled):
        loader = jinja2.FileSystemLoader((folder / backend, folder))
        super().__init__(loader=loader, bytecode_cache=compiled, **_OPTIONS)


class _Compiled(jinja2.BytecodeCache):
    """A cache of compiled templates, keyed by a digest of name and text. It reads those of the
    build, and those that the user's processes have left in the cache folder. Compiling all
    templates of a backend takes half a second."""

    def __init__(self, writes: Path):
        self.writes = writes

    def get_bucket(
        self, environment: jinja2.Environment, name: str, filename: str | None, source: str
    ) -> Bucket:
        made_by = f"{jinja2.__version__}\0{sys.version}\0{_OPTIONS}"
        key = text_digest(f"{made_by}\0{name}\0{source}")
        bucket = Bucket(environment, key, self.get_source_checksum(source))
        self.load_bytecode(bucket)
        if bucket.code is not None and filename is not None:
            bucket.code = bucket.code.replace(co_filename=filename)  # errors name this file
        return bucket

    def load_bytecode(self, bucket: Bucket) -> None:
        for folder in (BUILT, self.writes):
            with suppress(OSError), (folder / bucket.key).open("rb") as file:
                bucket.load_bytecode(file)
            if bucket.code is not None:
                return

    def dump_bytecode(self, bucket: Bucket) -> None:
        with suppress(OSError):  # a folder that cannot be written: templates are compiled each time
            self.writes.mkdir(parents=True, exist_ok=True)
            with NamedTemporaryFile(dir=self.writes) as file:
                bucket.write_bytecode(file)
                file.flush()
                with suppress(FileExistsError):  # another process was faster
                    os.link(file.name, self.writes / bucket.key)


def _kept() -> _Compiled:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return _Compiled(cache / "speciate" / "templates")


class Templates:
    """The templates below `templates/<backend>/`, with a backend's own filters and globals.

    A template may include and import others of its folder, and those of a shared folder as
    `folder/name`. Any error, in the text of a template or while it renders, becomes a BackendError
    of stage `emit` that names file and line.
    """

    def __init__(
        self,
        backend: str,
        filters: Mapping[str, Callable[..., Any]] | None = None,
        values: Mapping[str, Any] | None = None,
        folder: Path = TEMPLATES,
    ):
        self.folder = folder / backend
        self.environment = _Environment(backend, folder, _kept())
        del self.environment.filters["random"], self.environment.globals["lipsum"]
        self._spellers: list[_Speller] = []
        self.environment.globals["speller"] = self._speller
        self.environment.filters["one_line"] = _one_line
        for name, filter in (filters or {}).items():
            if name in self.environment.filters or hasattr(filter, "jinja_pass_arg"):
                raise ValueError(f"filter `{name}`: compiled templates take it for another sort")
            self.environment.filters[name] = filter
        self.environment.globals.update(values or {})

    def render(self, template: str, **values: Any) -> str:
        """Renders a template for some values."""
        try:
            return self.environment.get_template(template).render(**values)
        except jinja2.TemplateNotFound as e:
            raise self._fault(template, 0, f"there is no template `{e.name}`") from e
        except jinja2.TemplateSyntaxError as e:
            raise self._fault(e.name or template, e.lineno, e.message or "bad syntax") from e
        except _FAULTS as e:
            name, line = self._line(e, template)
            raise self._fault(name, line, f"{type(e).__name__}: {e}") from e
        finally:
            for speller in self._spellers:
                speller.texts.clear()

    def _speller(self, macros: Mapping[str, Callable[..., str]]) -> _Speller:
        """The function that a template calls as `speller(macros)(node)`, with one macro per type of node."""
        self._spellers.append(_Speller(macros))
        return self._spellers[-1]

    def table(self, template: str, name: str) -> Mapping[str, str]:
        """A table that a template defines at its top level."""
        return getattr(self.environment.get_template(template).module, name)

    def digest(self) -> str:
        """A digest of the names and texts of all templates of the backend."""
        return template_digest(self.folder.name, self.folder.parent)

    def _line(self, error: Exception, template: str) -> tuple[str, int]:
        """The innermost template and line that were being rendered."""
        found, root = (template, 0), self.folder.parent
        for frame in traceback.extract_tb(error.__traceback__):
            path = Path(frame.filename)
            if path.is_relative_to(root):
                found = (str(path.relative_to(root)), frame.lineno or 0)
        return found

    def _fault(self, template: str, line: int, what: str) -> BackendError:
        place = template if "/" in template else f"{self.folder.name}/{template}"
        return BackendError("emit", f"template {place}{f', line {line}' if line else ''}: {what}")


class _Named(dict[str, Any]):
    """A table of filters that has one for any name."""

    def get(self, name: str, default: Any = None) -> Any:
        return super().get(name, str)


def compile_ahead(to: Path, folder: Path = TEMPLATES) -> None:
    """Compiles all templates into a folder, which becomes `BUILT`."""
    files = sorted(folder.rglob(_ENDING))
    texts = (f.read_text(encoding="utf-8") for f in files)
    shared = {name for text in texts for name in _SHARED.findall(text)}
    for place in sorted({f.relative_to(folder).parts[0] for f in files}):
        environment = _Environment(place, folder, _Compiled(to))
        environment.filters = _Named(environment.filters)
        own = {f.relative_to(folder / place).as_posix() for f in (folder / place).rglob(_ENDING)}
        for name in sorted(own | shared):
            environment.get_template(name)


def _one_line(text: str) -> str:
    """A text that is safe in a line comment: without line breaks, and without a continuation at its end."""
    plain = "".join(c if c.isprintable() else " " for c in text)
    return f"{plain}." if plain.endswith("\\") else plain


def template_digest(backend: str, folder: Path = TEMPLATES) -> str:
    """A digest of the names and texts of a backend's templates and of the shared templates that
    they import; the digest of nothing if it has none."""
    root = folder / backend
    files = root.rglob(_ENDING) if root.is_dir() else ()
    texts = {f.relative_to(root).as_posix(): f.read_text(encoding="utf-8") for f in files}
    todo = list(texts.values())
    while todo:
        for name in set(_SHARED.findall(todo.pop())) - texts.keys():
            texts[name] = (folder / name).read_text(encoding="utf-8")
            todo.append(texts[name])
    return text_digest("\0".join(f"{name}\n{texts[name]}" for name in sorted(texts)))
