"""Scripted answers: what the server says, read from files.

NAME.md is a text, with a table in TOML between lines of +++ before it where there is more to
say; NAME.toml and NAME.json are such tables alone. The fields are those of `Scripted`.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ANSWERS = Path(__file__).parent / "answers"
ENDINGS = (".json", ".md", ".toml")
FENCE = "+++\n"


@dataclass(frozen=True, slots=True)
class Scripted:
    """One answer."""

    name: str
    text: str = ""
    # It fits prompts that hold all of these; none for one that is chosen by name alone
    words: tuple[str, ...] = ()
    # `status`, `headers`, `error`: of the response; an error's message, type, code and param
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    error: Mapping[str, str] | None = None
    body: str | None = None  # sent as it is, instead of what the protocol wants
    refusal: str = ""  # said in place of a text
    calls: tuple[Mapping[str, str], ...] = ()  # of functions: `name` and `arguments`
    finish: str = "stop"
    # After so many characters the answer ends; `broken` says that the connection does
    cut: int | None = None
    broken: bool = False
    delay: float = 0.0  # seconds before it begins
    pause: float = 0.0  # between pieces
    # Sent in a stream again and again, instead of an answer, until nobody listens
    endless: str = ""
    # Tokens in and out; empty where none are told, None where words are counted
    usage: tuple[int, ...] | None = None

    def fits(self, prompt: str) -> bool:
        """Whether this is meant for a prompt."""
        return bool(self.words) and all(word in prompt for word in self.words)


def scripted(path: Path) -> Scripted:
    """The answer that a file holds."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        return _scripted(path.stem, json.loads(text))
    if path.suffix == ".toml":
        return _scripted(path.stem, tomllib.loads(text))
    table = ""
    if text.startswith(FENCE):
        table, _, text = text.removeprefix(FENCE).partition(FENCE)
    return _scripted(path.stem, {"text": text, **tomllib.loads(table)})


def library(folder: Path = ANSWERS) -> dict[str, Scripted]:
    """The answers of a folder, by name."""
    files = sorted(p for p in folder.iterdir() if p.suffix in ENDINGS)
    found = {p.stem: scripted(p) for p in files}
    if len(found) < len(files):
        raise ValueError(f"two files of {folder} have one name")
    return found


def _scripted(name: str, table: dict[str, Any]) -> Scripted:
    for key in ("words", "usage"):
        if key in table:
            table[key] = tuple(table[key])
    return Scripted(name=name, **table)
