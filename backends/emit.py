"""Emission: the templates of a backend, rendered the same way each time.

The only module of backends that knows the template engine. Names that a template asks for and
does not get are errors; nothing random or of the time of day is in reach of a template.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jinja2

from backends.backend import BackendError
from ir.digest import text_digest

TEMPLATES = Path(__file__).parent.parent / "templates"
_ENDING = "*.j2"
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
        self.environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader((self.folder, folder)),
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            autoescape=False,
            auto_reload=False,
        )
        del self.environment.filters["random"], self.environment.globals["lipsum"]
        self._spellers: list[_Speller] = []
        self.environment.globals["speller"] = self._speller
        self.environment.filters["one_line"] = _one_line
        self.environment.filters.update(filters or {})
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
