"""Admission: what a kernel's C++ text may hold, so that it computes with the device alone.

A kernel's library shares the process of the simulator that counts its cycles. A text that keeps to
numbers, tiles and commands cannot reach it, nor keep anything between processing elements or
launches that the device did not move: no pointer, subscript, cast or address, no variable that
outlives the kernel, no library. What is emitted keeps to that; what was edited is held to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NoReturn

from backends.backend import BackendError
from backends.shared.texts import BUILTINS

INCLUDE = '#include "device.h"'
# Words of C++ that make memory, types, or control beyond a kernel's own loops.
WORDS = frozenset(
    """
    alignas asm bitand bitor class compl const_cast decltype delete dynamic_cast extern friend goto
    inline mutable new nullptr operator private protected public register reinterpret_cast requires
    sizeof static static_cast struct template this thread_local typedef typeid typename union
    virtual volatile throw try catch
    """.split()
)
# Names of the interface that only the simulator uses: members, and types with their values.
MEMBERS = frozenset("slot first_slot room handle sizes axes at shape".split())
NAMES = frozenset("std Launch Program Issued Number Pe Args Misuse List".split())
TYPES = frozenset(
    """
    auto bool char double float int long short signed unsigned void const Axis Box Buffer Dtype Fold
    Group Index List Op Operand Operands Outside Region Slice Span Step Tensor Tile
    """.split()
)
MADE = ("Buffer", "Tensor", "Tile")  # by the device, never by hand
STARTS = ("using", "namespace", "constexpr", "enum", "KERNEL", ";", "}")
_TRICKS = ("\\", "??", "<:", ":>", "<%", "%>", "%:")  # other spellings of what is refused
_TOKEN = re.compile(
    r'(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<text>"[\w ]*")|(?P<word>[A-Za-z_]\w*)'
    r"|(?P<number>\d[\w.]*(?:(?<=[eE])[-+]\d+)?)|(?P<mark>&&|->|::|[-+*/%&|^=!<>]=|\S)",
    re.DOTALL,
)


def require_admissible(source: str) -> None:
    """BackendError("build") at the first thing in a text that a kernel may not use."""
    for number, line in enumerate(source.splitlines(), 1):
        if line.lstrip().startswith("#") and line.strip() != INCLUDE:
            _refuse(number, line.strip(), f"the only directive is {INCLUDE}")
        for trick in _TRICKS:
            if trick in line.partition("//")[0] or line.endswith("\\"):
                _refuse(number, trick, "it is another spelling of something")
    tokens = list(_tokens(source))
    _require_words(tokens)
    _require_declarations(tokens)


def _tokens(source: str) -> Iterator[tuple[str, str, int]]:
    """(kind, text, line) of each token but comments and the include."""
    for found in _TOKEN.finditer(source.replace(INCLUDE, " " * len(INCLUDE))):
        if found.lastgroup != "comment":
            line = source.count("\n", 0, found.start()) + 1
            yield found.lastgroup or "", found[0], line


def _require_words(tokens: list[tuple[str, str, int]]) -> None:
    """No word, mark or sequence of them that reaches beyond the device."""
    ends = [("", "", 0)]
    for before, now, after in zip(ends + tokens, tokens, tokens[1:] + ends):
        kind, text, line = now
        if kind == "word" and (text in WORDS or "__" in text and text not in BUILTINS):
            _refuse(line, text, "a kernel has numbers, tiles and commands, and its own loops")
        if text in NAMES and (after[0] == "word" or after[1] in ("::", "{", "&", "<")):
            _refuse(line, text, "it is the simulator's")
        if text in MEMBERS and before[1] == ".":
            _refuse(line, f".{text}", "it is the simulator's")
        if text in ("[", "]", "->", "'", '"', "@", "$", "`") or not text.isascii():
            _refuse(line, text, "a kernel has no subscripts, members by pointer or characters")
        if text in ("*", "&"):
            first = before[0] in ("word", "number") or before[1] == ")"
            second = after[0] in ("word", "number") or after[1] == "("
            if not (first and second) or before[1] in TYPES or before[1] == "return":
                _refuse(line, text, "it stands between two numbers, as there are no pointers")
        if text in MADE and after[1] in ("{", "("):
            _refuse(line, text, "the device makes it: `pe.buffer`, `tile`, `args.tensor`")
        if before[1] == "." and after[1] == "=":
            _refuse(line, f".{text} =", "what the device made is not changed")


def _require_declarations(tokens: list[tuple[str, str, int]]) -> None:
    """Outside of kernels: namespaces, enums and constants, so that nothing outlives a call."""
    depth, outside, start = 0, 0, True  # outside: how many of the open braces are namespaces'
    opening = ""
    for number, (_, text, line) in enumerate(tokens):
        if depth == outside and start:
            if text not in STARTS or text == "using" and tokens[number + 1][1] != "namespace":
                _refuse(line, text, "outside of kernels there are constants, enums, namespaces")
            opening = text
        start = text in (";", "}") or text == "{" and opening == "namespace" and depth == outside
        if text == "{":
            outside += depth == outside and opening == "namespace"
            depth += 1
        elif text == "}":
            outside -= depth == outside
            depth -= 1


def _refuse(line: int, text: str, why: str) -> NoReturn:
    raise BackendError("build", f"line {line}: `{text}` is not for a kernel: {why}")
