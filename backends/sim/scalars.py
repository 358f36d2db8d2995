"""Scalar work: charges time for what a kernel computes on the control core between its commands.

The build counts the operators of each loop, and inserts a call that reports them in each iteration.
A few operators between two commands are free (`kFreeScalars` of `native/element.h`), because they
are issued in parallel to the commands. So programs that issue commands keep their times, and a
kernel that computes results on the control core pays for it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from backends.backend import BackendError

_TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"[^"\n]*"|[A-Za-z_]\w*|[-+*/%&|^=!<>]=|&&|\|\||\S', re.S)
_LOOPS = ("for", "while")
_OPERATORS = frozenset("+ - * / % & | ^ ~ ! < > ? += -= *= /= %= <= >= == != && ||".split())
_CLOSING = {"(": ")", "{": "}"}


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    start: int


def charged(source: str) -> str:
    """An admitted source whose loops report the operators of each iteration.

    Raises BackendError("build") if the body of a loop is neither a block nor a simple statement,
    and for `do` loops.
    """
    tokens = [
        _Token(f[0], f.start()) for f in _TOKEN.finditer(source) if f[0][:2] not in ("//", "/*")
    ]
    inserted: list[tuple[int, str]] = []
    for at, token in enumerate(tokens):
        if token.text == "do":
            _refuse(source, token, "loops are `for` and `while`")
        if token.text not in _LOOPS:
            continue
        head = _end(source, tokens, at + 1, "(")
        body = _body(source, tokens, head)
        count = _operators(tokens[at + 1 : head]) + _operators(_own(source, tokens, head, body))
        call = f" pe.scalars({count + 1});"
        if tokens[head].text == "{":
            inserted.append((tokens[head].start + 1, call))
        else:
            inserted.append((tokens[head].start, f"{{{call} "))
            inserted.append((tokens[body - 1].start + 1, " }"))
    for place, text in sorted(inserted, reverse=True):
        source = source[:place] + text + source[place:]
    return source


def _own(source: str, tokens: Sequence[_Token], start: int, end: int) -> list[_Token]:
    """The tokens of a block without those of inner loops, which report their own."""
    found, at = [], start
    while at < end:
        if tokens[at].text in _LOOPS:
            at = _body(source, tokens, _end(source, tokens, at + 1, "("))
            continue
        found.append(tokens[at])
        at += 1
    return found


def _body(source: str, tokens: Sequence[_Token], at: int) -> int:
    """The position after a loop's body: a block, or a statement with its semicolon."""
    first = tokens[min(at, len(tokens) - 1)]
    if first.text in (*_LOOPS, "if", "switch", "do", "else", ";"):
        _refuse(source, first, "write the body of a loop as a block: `{ ... }`")
    if first.text == "{":
        return _end(source, tokens, at, "{")
    for number in range(at, len(tokens)):
        if tokens[number].text in ("{", "}"):
            break
        if tokens[number].text == ";":
            return number + 1
    _refuse(source, first, "write the body of a loop as a block: `{ ... }`")


def _operators(tokens: Sequence[_Token]) -> int:
    return sum(token.text in _OPERATORS for token in tokens)


def _end(source: str, tokens: Sequence[_Token], at: int, opening: str) -> int:
    """The position after the matching closing bracket."""
    if at >= len(tokens) or tokens[at].text != opening:
        _refuse(source, tokens[min(at, len(tokens) - 1)], f"a loop has `{opening}` here")
    depth = 0
    for number in range(at, len(tokens)):
        depth += (tokens[number].text == opening) - (tokens[number].text == _CLOSING[opening])
        if depth == 0:
            return number + 1
    _refuse(source, tokens[at], "it is not closed")


def _refuse(source: str, token: _Token, why: str) -> NoReturn:
    line = source.count("\n", 0, token.start) + 1
    raise BackendError("build", f"line {line}: `{token.text}` is not for a kernel: {why}")
