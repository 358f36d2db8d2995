"""Counts who spells emitted sources: the templates, or strings that Python hands to them.

A language whose templates spell it has one macro for each node of a program; strings are then the
names that a spec gives, and the equations in comments.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Any

from backends.emit import Templates
from kernels_generated.reproduction import reproduction
from search.record.record import read_record

RECORDS = Path("kernels_generated")
EXAMPLES = """
examples:
  spelled TARGET
      of the records of a target, in percent of all characters
"""
_STRINGS, _NUMBERS = 0xF0000, 0x100000  # private planes that mark characters by where they are from
_LAST = 0xFFFD


class Given(str):
    """A string of Python's: equal to itself, but marked where it is written."""

    __slots__ = ()

    def __str__(self) -> str:
        return _marked(str.__str__(self), _STRINGS)

    def __getitem__(self, at: Any) -> Given:
        return Given(str.__getitem__(self, at))

    def upper(self) -> Given:
        """The same in capitals, of Python too."""
        return Given(str.upper(self))


class Count(int):
    """A number of Python's."""

    __slots__ = ()

    def __str__(self) -> str:
        return _marked(int.__repr__(self), _NUMBERS)


def shares(texts: Sequence[str]) -> Mapping[str, float]:
    """The shares of all characters of marked texts: of templates, strings and numbers."""
    counts = Counter(_origin(c) for text in texts for c in text)
    total = counts.total()
    return {name: counts[name] / total for name in ("templates", "strings", "numbers")}


def plain(text: str) -> str:
    """A text without marks."""
    return "".join(chr(_code(c)) for c in text)


def given(value: Any) -> Any:
    """A value with all strings and whole numbers in it marked."""
    match value:
        case bool():
            return value
        case str():
            return Given(plain(value))  # a filter may have put marked ones together
        case int():
            return Count(value)
        case tuple() | list() | frozenset() | set():
            return type(value)(given(v) for v in value)
        case dict():
            return {name: given(v) for name, v in value.items()}
    if not is_dataclass(value):
        return value
    made = copy(value)
    for f in fields(value):
        # Not by its constructor, which may accept whole numbers alone.
        object.__setattr__(made, f.name, given(getattr(value, f.name)))
    return made


@contextmanager
def marking() -> Iterator[list[str]]:
    """While it lasts, what templates render is marked; gives the marked texts."""
    found: list[str] = []
    render = Templates.render

    def marked(self: Templates, template: str, **values: Any) -> str:
        environment = self.environment
        kept = dict(environment.filters)
        join_path = environment.join_path
        # Includes are found by their names, whoever gave them; what filters make is Python's.
        environment.join_path = lambda name, parent: join_path(plain(name), parent)
        environment.filters.update({n: _marking(f) for n, f in kept.items() if _own(f)})
        _forget(self)
        try:
            found.append(render(self, template, **given(values)))
        finally:
            environment.filters.update(kept)
            _forget(self)
            environment.join_path = join_path
        return plain(found[-1])

    Templates.render = marked
    try:
        yield found
    finally:
        Templates.render = render


def records(root: Path, machine: str) -> Iterator[tuple[str, str]]:
    """The records of a target: what each says now, marked and plain."""
    for folder in sorted((root / RECORDS).glob(f"*/{machine}")):
        made = reproduction(read_record(folder))
        emitted = made.emit()
        with marking() as found:
            if made.emit() != emitted or len(found) != 1:
                raise AssertionError(f"{folder}: marked, it is another text")
        yield folder.parent.name, found[0]


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the shares of each record of targets, and of all."""
    parser = argparse.ArgumentParser(
        prog="spelled",
        description=__doc__.splitlines()[0],
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("target", nargs="+")
    asked = parser.parse_args(arguments)
    root = Path(os.environ.get("BUILD_WORKSPACE_DIRECTORY", "."))
    for machine in asked.target:
        texts = dict(records(root, machine))
        for name, text in (*texts.items(), ("all", "".join(texts.values()))):
            parts = ", ".join(f"{part} {share:.1%}" for part, share in shares([text]).items())
            print(f"{name} {machine}: {parts}")
    return 0


def _marking(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def found(*args: Any, **kwargs: Any) -> Any:
        # It may look at what a text says; what it makes is Python's, whatever it is made of.
        result = function(*(plain(a) if isinstance(a, str) else a for a in args), **kwargs)
        return given(list(result) if isinstance(result, Iterator) else result)

    return found


def _forget(templates: Templates) -> None:
    """Forgets what was loaded, which has the filters of that time."""
    if templates.environment.cache is not None:
        templates.environment.cache.clear()


def _own(function: Callable[..., Any]) -> bool:
    """Whether a filter is a backend's, not the template engine's."""
    return getattr(function, "__module__", "").startswith("backends.")


def _marked(text: str, plane: int) -> str:
    return "".join(chr(plane + min(ord(c), _LAST)) for c in text)


def _origin(c: str) -> str:
    if ord(c) < _STRINGS:
        return "templates"
    return "strings" if ord(c) < _NUMBERS else "numbers"


def _code(c: str) -> int:
    plane = {"templates": 0, "strings": _STRINGS, "numbers": _NUMBERS}[_origin(c)]
    return ord(c) - plane


if __name__ == "__main__":
    sys.exit(main())
