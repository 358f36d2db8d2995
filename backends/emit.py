"""Emission: the templates of a backend, rendered the same way each time.

The only module of backends that knows the template engine. Names that a template asks for and
does not get are errors; nothing random or of the time of day is in reach of a template.
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
BUILT = Path(__file__).parent / "compiled_templates"  # what the build compiles ahead
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
    """Spells a node by the macro of its type, once for each rendering: nodes share their parts."""

    __slots__ = ("macros", "texts")

    def __init__(self, macros: Mapping[str, Callable[..., str]]):
        self.macros = macros
        self.texts: dict[tuple[Any, ...], tuple[object, str]] = {}

    def add(self, macros: Mapping[str, Callable[..., str]]) -> _Speller:
        """Itself, which spells more types of nodes from now on: those that a language adds to what
        languages share. A macro of the same name takes the place of the shared one."""
        self.macros = {**self.macros, **macros}
        return self

    def __call__(self, node: object, *words: Any) -> str:
        # By identity: equal nodes may have unlike texts, as 1 and True. Holding the node keeps
        # its address from being used again.
        key = (id(node), *words)
        found = self.texts.get(key)
        if found is None:
            found = self.texts[key] = (node, self.macros[type(node).__name__](node, *words))
        return found[1]


class _Unfolded(CodeGenerator):
    """Makes code that depends on the text of a template alone: no filter is called ahead."""

    def _output_child_to_const(self, node: Any, frame: Any, finalize: Any) -> str:
        if not isinstance(node, jinja2.nodes.TemplateData):
            raise jinja2.nodes.Impossible
        return super()._output_child_to_const(node, frame, finalize)


class _Environment(jinja2.Environment):
    """That of a backend's templates, which are below `folder` as those that backends share are."""

    code_generator_class = _Unfolded

    def __init__(self, backend: str, folder: Path, compiled: _Compiled):
        loader = jinja2.FileSystemLoader((folder / backend, folder))
        super().__init__(loader=loader, bytecode_cache=compiled, **_OPTIONS)


class _Compiled(jinja2.BytecodeCache):
    """Compiled templates, by a digest of name and text: those of the build, and those that this user's
    processes have left in the cache folder. To compile all of a backend takes half a second."""

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
            bucket.code = bucket.code.replace(co_filename=filename)  # which errors name
        return bucket

    def load_bytecode(self, bucket: Bucket) -> None:
        for folder in (BUILT, self.writes):
            with suppress(OSError), (folder / bucket.key).open("rb") as file:
                bucket.load_bytecode(file)
            if bucket.code is not None:
                return

    def dump_bytecode(self, bucket: Bucket) -> None:
        with suppress(OSError):  # a folder that cannot be written: it is compiled each time
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
    """The templates under `templates/<backend>/`, with a backend's own filters and globals.

    A template may include and import its neighbours, and by `folder/name` those of a folder that
    languages share. Errors of any sort, in the text of a
    template or while it renders, are a BackendError at stage `emit` that names file and line.
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
        """The text of a template for the values."""
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
        """What a template calls as `speller(macros)(node)`, with a macro for each type of node."""
        self._spellers.append(_Speller(macros))
        return self._spellers[-1]

    def table(self, template: str, name: str) -> Mapping[str, str]:
        """A table that a template sets at its top."""
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
    """Filters, of which there is one of any name."""

    def get(self, name: str, default: Any = None) -> Any:
        return super().get(name, str)


def compile_ahead(to: Path, folder: Path = TEMPLATES) -> None:
    """Compiles all templates into a folder, for `BUILT`."""
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
    """A text for a comment that ends with its line: no other end of a line, nor one that goes on."""
    plain = "".join(c if c.isprintable() else " " for c in text)
    return f"{plain}." if plain.endswith("\\") else plain


def template_digest(backend: str, folder: Path = TEMPLATES) -> str:
    """A digest of the names and texts of a backend's templates, and of those that they import from
    folders that languages share; of nothing where it has none."""
    root = folder / backend
    files = root.rglob(_ENDING) if root.is_dir() else ()
    texts = {f.relative_to(root).as_posix(): f.read_text(encoding="utf-8") for f in files}
    todo = list(texts.values())
    while todo:
        for name in set(_SHARED.findall(todo.pop())) - texts.keys():
            texts[name] = (folder / name).read_text(encoding="utf-8")
            todo.append(texts[name])
    return text_digest("\0".join(f"{name}\n{texts[name]}" for name in sorted(texts)))
