"""Admission check: what a source of C-like kernels may contain, so that it does the kernels' work
and nothing else.

A source has only kernels: no host code, no headers except its language's, no assembly, no pointer
casts, nothing that outlives a launch. Emitted sources pass; edited ones are checked. The check does
not see whether indices stay within tensors.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from backends.backend import BackendError
from backends.shared.admission import (
    WORDS,
    Token,
    require_one_spelling,
    require_plain_lines,
    tokens,
)

_DIRECTIVE = re.compile(
    r"#ifndef \w+|#define (?:\w+_WIDTH|EVEN|STEPS|ALIGNED|SIZE|BULK|CLUSTER|FAR)\w* \d+|#endif|#pragma unroll( \d+)?"
)
_TOKEN = re.compile(
    r'(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<text>"[^"\n]*")|(?P<word>[A-Za-z_]\w*)'
    r"|(?P<number>\d[\w.]*(?:(?<=[eE])[-+]\d+)?)|(?P<mark>&&|->|::|[-+*/%&|^=!<>]=|\S)",
    re.DOTALL,
)
_HEAD = re.compile(
    r'extern "C" __global__ void (?:__launch_bounds__ \( \d+(?: , \d+)? \)(?: __maxnreg__ \( \d+ \))?|__maxnreg__ \( \d+ \)) \w+ \( (?P<parameters>[^()]*) \) {'
)
PARAMETER = r"(?:const )?\w+ \* __restrict__ \w+|int \w+"
TYPES = frozenset(
    "float double int bool i64 i32 i16 i8 u8 u16 u32 u64 f16 bf16 f8e4m3 f8e5m2 f8e8m0".split()
)
COMPILER = frozenset("__global__ __launch_bounds__ __maxnreg__ __restrict__ __syncthreads".split())
# Functions that every language may call: control flow, constants, and the functions of prelude.h
# including those of `fn`.
CALLED = TYPES | frozenset(
    """
    if for while switch return __launch_bounds__ __maxnreg__ __syncthreads cdiv round_up least most least_of
    most_of swizzle panel load store add_to rank shuffle_xor scan scan_after
    shared_at join
    """.split()
)
_BOUNDS = {"__launch_bounds__", "__maxnreg__"}  # may precede the name of a kernel
BANNED = (WORDS | {"using", "namespace", "enum"}) - {"extern"}


_QUALIFIERS = ("const", "__restrict__", "between_blocks")  # of a pointer


@dataclass(frozen=True, slots=True)
class Admission:
    """What the sources of one language may contain."""

    includes: tuple[str, ...]  # the include lines of its headers
    called: frozenset[str]  # functions of its headers, in addition to those of all kernels
    parameter: str = PARAMETER  # the pattern of a kernel's parameters
    compiler: frozenset[str] = COMPILER  # words of its compiler that begin with `__`

    def require(self, source: str) -> None:
        """Raises BackendError("build") at the first construct that a kernel may not use."""
        require_plain_lines(source)
        _require_directives(source, self.includes)
        found = list(tokens(source, _TOKEN))
        _require_words(found, self.called | CALLED, self.compiler)
        _require_kernels(found, self.parameter)


def _require_directives(source: str, includes: tuple[str, ...]) -> None:
    """Allows only a language's includes, constants and loop unrolling as directives."""
    for number, line in enumerate(source.splitlines(), 1):
        directive = line.strip()
        if (
            directive.startswith("#")
            and directive not in includes
            and not _DIRECTIVE.fullmatch(directive)
        ):
            _refuse(
                number,
                directive,
                f"directives are {', '.join(includes)}, constants, #pragma unroll",
            )
        require_one_spelling(number, line)


def _require_words(tokens: list[Token], allowed: frozenset[str], compiler: frozenset[str]) -> None:
    """Refuses words and sequences of operators that reach beyond a kernel's own values."""
    texts = [text for _, text, _ in tokens]
    for at, (kind, text, line) in enumerate(tokens):
        after = texts[at + 1] if at + 1 < len(texts) else ""
        before = texts[at - 1] if at else ""
        if kind == "word":
            hidden = text.startswith("__") and text not in compiler and not _declares(texts, at)
            if text in BANNED or hidden:
                _refuse(line, text, "a kernel has numbers, registers, tiles and its own loops")
            if text in TYPES and after == "*" and texts[at + 2] not in _QUALIFIERS:
                _refuse(line, f"{text} *", "pointers are tensors and tiles, and are not cast")
            called = after == "(" or after == "<" and _opens_call(texts, at + 1)
            if called and before != "::" and text not in allowed and not _declares(texts, at):
                _refuse(line, text, "it is no function of kernel.h")
            if before == "::" and texts[at - 2] != "fn":
                _refuse(line, text, "it is no function of kernel.h")
            if text == "extern" and after != '"C"':
                _refuse(line, text, "a kernel has numbers, registers, tiles and its own loops")
        elif kind == "text" and text != '"C"':
            _refuse(line, text, "a kernel has no texts")
        elif text in ("'", "->", "@", "$", "`", "#") or not text.isascii():
            _refuse(
                line, text, "a kernel has no characters, members by pointer, further directives"
            )
        elif text == "[" and not (tokens[at - 1][0] == "word" or before in (")", "]")):
            if texts[at + 1 : at + 3] != ["]", "("]:  # two numbers to one, for a scan
                _refuse(
                    line,
                    text,
                    "it is a subscript; a function captures nothing, and there are no attributes",
                )
        elif text == "&&" and before in TYPES | {"auto"}:
            _refuse(line, f"{before}&&", "there are no references to what a kernel has not")


def _opens_call(texts: list[str], at: int) -> bool:
    """Whether template arguments begin that are followed by a call."""
    depth = 0
    for n in range(at, min(at + 40, len(texts) - 1)):
        depth += (texts[n] == "<") - (texts[n] == ">")
        if texts[n] in (";", "{", "}", "&&", "("):
            return False
        if depth == 0:
            return texts[n + 1] == "("
    return False


def _declares(texts: list[str], at: int) -> bool:
    """Whether a word is the name of a kernel in its definition."""
    return texts[at - 1] == ")" and bool(_BOUNDS & set(texts[max(0, at - 6) : at]))


def _require_kernels(tokens: list[Token], parameter: str) -> None:
    """Requires that there are only kernels outside of braces."""
    head: list[str] = []
    depth, first = 0, 1
    for _, text, line in tokens:
        if depth == 0:
            first = first if head else line
            head.append(text)
        depth += (text == "{") - (text == "}")
        if depth == 1 and head:
            found = _HEAD.fullmatch(" ".join(head))
            parameters = found["parameters"].split(" , ") if found else [""]
            if not all(re.fullmatch(parameter, p) for p in parameters):
                _refuse(first, " ".join(head[:6]), "outside of kernels there is nothing")
            head = []
    if head or depth:
        _refuse(first, " ".join(head[:6]) or "{", "outside of kernels there is nothing")


def _refuse(line: int, text: str, why: str) -> NoReturn:
    raise BackendError("build", f"line {line}: `{text}` is not for a kernel: {why}")
