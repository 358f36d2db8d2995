"""Writes TOML: the counterpart of the standard library's `tomllib`, for plain tables."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_WIDE = 100  # longest line before a list is written with one entry on each line


def toml_text(table: Mapping[str, Any]) -> str:
    """The TOML text of a table: strings, numbers, booleans, lists, tables. None values are left
    out.

    A top-level table becomes a `[name]` section; deeper tables are inline. `tomllib` reads an equal
    table back. Raises TypeError for other values.
    """
    plain = {k: v for k, v in table.items() if not isinstance(v, Mapping)}
    sections = {k: v for k, v in table.items() if isinstance(v, Mapping)}
    blocks = [_lines(plain), *(f"[{_key(k)}]\n{_lines(v)}" for k, v in sections.items())]
    return "\n".join(block for block in blocks if block)


def _lines(table: Mapping[str, Any]) -> str:
    return "".join(f"{_key(k)} = {_value(v)}\n" for k, v in table.items() if v is not None)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _string(name)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, list | tuple):
        entries = [_value(v) for v in value]
        line = f"[{', '.join(entries)}]"
        if len(line) <= _WIDE:
            return line
        return "[\n" + "".join(f"    {entry},\n" for entry in entries) + "]"
    if isinstance(value, Mapping):
        entries = [f"{_key(k)} = {_value(v)}" for k, v in value.items() if v is not None]
        return "{ " + ", ".join(entries) + " }" if entries else "{}"
    raise TypeError(f"no TOML for {type(value).__name__}: {value!r}")


def _string(text: str) -> str:
    """A basic string. Characters that UTF-8 cannot encode become question marks."""
    text = text.encode("utf-8", "replace").decode()
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
