"""Admission: what a source may hold, so that its kernels do the work and nothing else.

A source has kernels alone: no host code, no header but kernel.h, no assembly, no casts between
pointers, nothing that outlives a launch. Emitted texts meet these rules; edited ones are held to
them. That indices stay within tensors is not seen here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NoReturn

from backends.backend import BackendError
from backends.shared.admission import WORDS

INCLUDE = '#include "kernel.h"'
_DIRECTIVE = re.compile(
    r"#ifndef \w+|#define (?:\w+_WIDTH|EVEN|STEPS|ALIGNED|SIZE|BULK)\w* \d+|#endif|#pragma unroll( \d+)?"
)
_TRICKS = ("\\", "??", "<:", ":>", "<%", "%>", "%:")  # other spellings of what is refused
_TOKEN = re.compile(
    r'(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<text>"[^"\n]*")|(?P<word>[A-Za-z_]\w*)'
    r"|(?P<number>\d[\w.]*(?:(?<=[eE])[-+]\d+)?)|(?P<mark>&&|->|::|[-+*/%&|^=!<>]=|\S)",
    re.DOTALL,
)
_HEAD = re.compile(
    r'extern "C" __global__ void (?:__launch_bounds__ \( \d+(?: , \d+)? \)|__maxnreg__ \( \d+ \)) \w+ \( (?P<parameters>[^()]*) \) {'
)
_PARAMETER = re.compile(
    r"(?:const )?\w+ \* __restrict__ \w+|const __grid_constant__ TensorMap \w+|int \w+"
)
TYPES = frozenset("float int bool i64 i32 i16 i8 u8 u16 u32 u64 f16 bf16 f8e4m3 f8e5m2".split())
COMPILER = frozenset(
    "__global__ __launch_bounds__ __maxnreg__ __restrict__ __syncthreads __grid_constant__".split()
)
# What may be called: control, constants, and the functions of kernel.h, all of `fn` beside them.
CALLED = TYPES | frozenset(
    """
    if for while switch return __launch_bounds__ __maxnreg__ __syncthreads cdiv round_up least most least_of
    most_of swizzle panel load store copy_async commit_copies wait_copies add_to rank shuffle_xor
    scan scan_after pair unpair load_matrices load_matrices_transposed mma_m16n8k16 mma_m16n8k8 shared_at join
    matrix wgmma arrive_warpgroup commit_warpgroup wait_warpgroup fence_shared
    assume init_signals expect arrive_thread arrive_warp await copy_box store_box finish_boxes sync_threads release_registers
    take_registers
    """.split()
)
_BOUNDS = {"__launch_bounds__", "__maxnreg__"}  # what may stand before the name of a kernel
_BANNED = (WORDS | {"using", "namespace", "enum"}) - {"extern"}
_Token = tuple[str, str, int]  # kind, text, line


def require_admissible(source: str) -> None:
    """BackendError("build") at the first construct that a kernel may not use."""
    for number, line in enumerate(source.splitlines(), 1):
        directive = line.strip()
        if (
            directive.startswith("#")
            and directive != INCLUDE
            and not _DIRECTIVE.fullmatch(directive)
        ):
            _refuse(number, directive, f"directives are {INCLUDE}, constants, #pragma unroll")
        for trick in _TRICKS:
            if trick in line.partition("//")[0] or line.endswith("\\"):
                _refuse(number, trick, "it is another spelling of something")
    tokens = list(_tokens(source))
    _require_words(tokens)
    _require_kernels(tokens)


def _tokens(source: str) -> Iterator[_Token]:
    """Each token but comments and directives."""
    text = re.sub(r"(?m)^[ \t]*#.*$", lambda found: " " * len(found[0]), source)
    for found in _TOKEN.finditer(text):
        if found.lastgroup != "comment":
            line = source.count("\n", 0, found.start()) + 1
            yield found.lastgroup or "", found[0], line


def _require_words(tokens: list[_Token]) -> None:
    """No word or sequence of marks that reaches beyond a kernel's own numbers."""
    texts = [text for _, text, _ in tokens]
    for at, (kind, text, line) in enumerate(tokens):
        after = texts[at + 1] if at + 1 < len(texts) else ""
        before = texts[at - 1] if at else ""
        if kind == "word":
            if text in _BANNED or text.startswith("__") and text not in COMPILER:
                _refuse(line, text, "a kernel has numbers, registers, tiles and its own loops")
            if text in TYPES and after == "*" and texts[at + 2] not in ("const", "__restrict__"):
                _refuse(line, f"{text} *", "pointers are tensors and tiles, and are not cast")
            called = after == "(" or after == "<" and _opens_call(texts, at + 1)
            if called and before != "::" and text not in CALLED and not _declares(texts, at):
                _refuse(line, text, "it is no function of kernel.h")
            if called and before == "::" and texts[at - 2] != "fn":
                _refuse(line, text, "it is no function of kernel.h")
        elif kind == "text" and text != '"C"':
            _refuse(line, text, "a kernel has no texts")
        elif text in ("'", "->", "@", "$", "`") or not text.isascii():
            _refuse(line, text, "a kernel has no characters and no members by pointer")


def _opens_call(texts: list[str], at: int) -> bool:
    """Whether arguments of a template begin, with those of a call after them."""
    depth = 0
    for n in range(at, min(at + 40, len(texts) - 1)):
        depth += (texts[n] == "<") - (texts[n] == ">")
        if texts[n] in (";", "{", "}", "&&", "("):
            return False
        if depth == 0:
            return texts[n + 1] == "("
    return False


def _declares(texts: list[str], at: int) -> bool:
    """Whether a word is the name of a kernel where it is defined."""
    return texts[at - 1] == ")" and bool(_BOUNDS & set(texts[max(0, at - 6) : at]))


def _require_kernels(tokens: list[_Token]) -> None:
    """Outside of braces there are heads of kernels alone."""
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
            if not all(map(_PARAMETER.fullmatch, parameters)):
                _refuse(first, " ".join(head[:6]), "outside of kernels there is nothing")
            head = []
    if head or depth:
        _refuse(first, " ".join(head[:6]) or "{", "outside of kernels there is nothing")


def _refuse(line: int, text: str, why: str) -> NoReturn:
    raise BackendError("build", f"line {line}: `{text}` is not for a kernel: {why}")
