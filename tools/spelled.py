"""Measures how much of the emitted sources comes from templates, and how much from Python strings.

A language that its templates spell has one macro for each node of a program. The strings are then
the names that a spec gives, and the equations in comments.
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
# Private planes of Unicode. They mark characters by their origin.
_STRINGS, _NUMBERS = 0xF0000, 0x100000
_LAST = 0xFFFD


class Given(str):
    """A string from Python. It is equal to an unmarked one, but marked when written."""

    __slots__ = ()

    def __str__(self) -> str:
        return _marked(str.__str__(self), _STRINGS)

    def __getitem__(self, at: Any) -> Given:
        return Given(str.__getitem__(self, at))

    def upper(self) -> Given:
        """Returns the string in capitals, marked too."""
        return Given(str.upper(self))


class Count(int):
    """A number from Python, marked when written."""

    __slots__ = ()

    def __str__(self) -> str:
        return _marked(int.__repr__(self), _NUMBERS)


def shares(texts: Sequence[str]) -> Mapping[str, float]:
    """Returns the shares of templates, strings and numbers in all characters of marked texts."""
    counts = Counter(_origin(c) for text in texts for c in text)
    total = counts.total()
    return {name: counts[name] / total for name in ("templates", "strings", "numbers")}


def plain(text: str) -> str:
    """Returns a text without marks."""
    return "".join(chr(_code(c)) for c in text)


def given(value: Any) -> Any:
    """Returns a value with all strings and integers in it marked."""
    match value:
        case bool():
            return value
        case str():
            # A filter may have joined marked strings.
            return Given(plain(value))
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
        # The constructor may accept only plain integers.
        object.__setattr__(made, f.name, given(getattr(value, f.name)))
    return made


@contextmanager
def marking() -> Iterator[list[str]]:
    """Marks what templates render inside the context. Yields the list of marked texts."""
    found: list[str] = []
    render = Templates.render

    def marked(self: Templates, template: str, **values: Any) -> str:
        environment = self.environment
        kept = dict(environment.filters)
        join_path = environment.join_path
        # Templates include others by plain name, so marks are removed. The output of a filter comes
        # from Python.
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
    """Yields each record of a target as it is emitted now, marked and plain."""
    for folder in sorted((root / RECORDS).glob(f"*/{machine}")):
        made = reproduction(read_record(folder))
        emitted = made.emit()
        with marking() as found:
            if made.emit() != emitted or len(found) != 1:
                raise AssertionError(f"{folder}: marked, it is another text")
        yield folder.parent.name, found[0]


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the shares of each record of the targets, and of all records."""
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
        # A filter may read its argument, so it gets unmarked text. All that it returns comes from
        # Python.
        result = function(*(plain(a) if isinstance(a, str) else a for a in args), **kwargs)
        return given(list(result) if isinstance(result, Iterator) else result)

    return found


def _forget(templates: Templates) -> None:
    """Clears the loaded templates, which hold the filters of the time they were loaded."""
    if templates.environment.cache is not None:
        templates.environment.cache.clear()


def _own(function: Callable[..., Any]) -> bool:
    """Whether a filter belongs to a backend, not to the template engine."""
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
