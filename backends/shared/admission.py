"""Admission: the constructs that a kernel's C++ text may use, so that it computes with its own
numbers only.

A kernel's library shares a process with the code that counts its cycles or times it. A text with
only numbers, tiles and calls of its interface cannot reach that code, and cannot keep anything
between launches: no pointer, subscript, cast or address, no variable that outlives the kernel, no
library. Emitted sources follow these rules; edited sources are checked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from dataclasses import dataclass
from typing import NoReturn

from backends.backend import BackendError
from backends.shared.texts import BUILTINS

# Words of C++ for memory, types, or control flow beyond a kernel's own loops.
WORDS = frozenset(
    """
    alignas asm bitand bitor class compl const_cast decltype delete dynamic_cast extern friend goto
    inline mutable new nullptr operator private protected public register reinterpret_cast requires
    sizeof static static_cast struct template this thread_local typedef typeid typename union
    virtual volatile throw try catch
    """.split()
)
NUMBERS = frozenset("auto bool char double float int long short signed unsigned void const".split())
DEEPEST = 100  # deepest nesting of brackets
_TRICKS = ("\\", "??", "<:", ":>", "<%", "%>", "%:")  # other spellings of refused marks
_TOKEN = re.compile(
    r'(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<text>"[\w ]*")|(?P<word>[A-Za-z_]\w*)'
    r"|(?P<number>\d[\w.]*(?:(?<=[eE])[-+]\d+)?)|(?P<mark>&&|->|::|[-+*/%&|^=!<>]=|\S)",
    re.DOTALL,
)
# some readers treat these as ends of lines
_CONTROLS = re.compile(r"[\0\r\f\v\x1c-\x1e\x85\u2028\u2029]")
Token = tuple[str, str, int]  # kind, text, line


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules that an interface adds to the general ones."""

    include: str  # the include line of the header
    what: str  # contents of a kernel, in words
    starts: tuple[str, ...]  # words that may begin a statement outside of kernels
    types: frozenset[str]  # pointers and references to these are refused
    members: frozenset[str] = frozenset()  # members of the interface that kernels must not name
    names: frozenset[str] = frozenset()  # names of the interface that kernels must not use
    made: tuple[str, ...] = ()  # types whose values only the interface creates
    directives: str = ""  # pattern of other allowed directives
    called: frozenset[str] | None = None  # names that may be called; None: any
    namespaces: frozenset[str] = frozenset()  # namespaces of the interface
    callable_types: tuple[str, ...] = ()  # types whose values may be called


def require_admissible(source: str, rules: Rules) -> None:
    """Raises BackendError("build") at the first construct that a kernel may not use."""
    require_plain_lines(source)
    for number, line in enumerate(source.splitlines(), 1):
        directive = line.strip()
        if directive.startswith("#") and directive != rules.include:
            if not (rules.directives and re.fullmatch(rules.directives, directive)):
                others = ", and some pragmas" if rules.directives else ""
                _refuse(number, directive, f"the only directive is {rules.include}{others}")
        require_one_spelling(number, line)
    found = list(tokens(source, _TOKEN))
    _require_shallow(found)
    _require_words(found, rules)
    _require_declarations(found, rules.starts)
    if rules.called is not None:
        _require_calls(found, rules, rules.called)


def require_plain_lines(source: str) -> None:
    """Raises BackendError("build") at a character that ends a line or the text for a compiler but
    not here."""
    if found := _CONTROLS.search(source):
        line = source.count("\n", 0, found.start()) + 1
        _refuse(line, ascii(found[0])[1:-1], "a line ends in one way, and a text where it ends")


def require_one_spelling(number: int, line: str) -> None:
    """Raises BackendError("build") at an alternative spelling of a mark. number: of the line."""
    for trick in _TRICKS:
        if trick in line.partition("//")[0] or line.endswith("\\"):
            _refuse(number, trick, "it is another spelling of something")


def tokens(source: str, pattern: re.Pattern[str]) -> Iterator[Token]:
    """The tokens without comments and directives. pattern: of one token, with a group for each
    kind."""
    text = re.sub(r"(?m)^[ \t]*#.*$", lambda found: " " * len(found[0]), source)
    line, counted = 1, 0
    for found in pattern.finditer(text):
        if found.lastgroup != "comment":
            line += source.count("\n", counted, found.start())
            counted = found.start()
            yield found.lastgroup or "", found[0], line


def _require_shallow(tokens: list[Token]) -> None:
    """Raises BackendError if brackets are nested so deep that a compiler takes minutes or overflows
    its stack."""
    depth = 0
    for _, text, line in tokens:
        depth += (text in ("(", "{")) - (text in (")", "}"))
        if depth > DEEPEST:
            _refuse(line, text, f"brackets are nested at most {DEEPEST} deep")


def _require_words(tokens: list[Token], rules: Rules) -> None:
    """Raises BackendError at a word, mark or sequence that reaches beyond the interface."""
    end = ("", "", 0)
    around = [end, *tokens, end, end]
    texts = [text for _, text, _ in tokens]
    own = {
        texts[n + 1]
        for n, text in enumerate(texts[:-2])
        if text == "namespace" and texts[n + 2] == "{"
    }
    own |= rules.namespaces
    for number, now in enumerate(tokens):
        before, after, next_after = around[number], around[number + 2], around[number + 3]
        kind, text, line = now
        constant = number > 1 and tokens[number - 2][1] == "const" and before[1] in rules.types
        if kind == "word" and (text in WORDS or "__" in text and text not in BUILTINS):
            _refuse(line, text, f"a kernel has {rules.what}, and its own loops")
        if text in rules.names and (after[0] == "word" or after[1] in ("::", "{", "&", "<")):
            _refuse(line, text, "it is the interface's own")
        if text in rules.members and before[1] == ".":
            _refuse(line, f".{text}", "it is the interface's own")
        if text == "using" and after[1] != "namespace":
            _refuse(line, text, "a kernel gives no names to types")
        if kind == "text" and after[0] == "word":
            _refuse(line, f"{text}{after[1]}", "a text has no meaning of its own")
        if text == "&&" and before[1] in rules.types:
            _refuse(line, f"{before[1]}&&", "there are no references to what is not constant")
        if text == "using":
            if next_after[1] not in own:
                _refuse(line, "using namespace", "only the interface's own, and those of the text")
        if text in ("#", "[", "]", "->", "'", '"', "@", "$", "`") or not text.isascii():
            _refuse(
                line,
                text,
                "a kernel has no subscripts, members by pointer, characters or further directives",
            )
        if text in ("*", "&"):
            first = before[0] in ("word", "number") or before[1] == ")"
            second = after[0] in ("word", "number") or after[1] in ("(", "~", "-")
            if text == "&" and constant and after[0] == "word":
                continue  # a reference to const
            if not (first and second) or before[1] in rules.types or before[1] == "return":
                _refuse(line, text, "it stands between two numbers, as there are no pointers")
        if text in rules.made and after[1] in ("{", "("):
            _refuse(line, text, "the interface makes it")
        if before[1] == "." and after[1] == "=":
            _refuse(line, f".{text} =", "what the interface made is not changed")


def _require_declarations(tokens: list[Token], starts: tuple[str, ...]) -> None:
    """Raises BackendError unless statements outside of kernels are namespaces, enums and constants,
    so that nothing outlives a call."""
    depth, outside, start = 0, 0, True  # outside: number of open braces of namespaces
    opening = ""
    for number, (_, text, line) in enumerate(tokens):
        if depth == outside and start:
            if text not in starts or text == "using" and tokens[number + 1][1] != "namespace":
                _refuse(line, text, "outside of kernels there are constants, enums, namespaces")
            opening = text
        start = text in (";", "}") or text == "{" and opening == "namespace" and depth == outside
        if text == "{":
            outside += depth == outside and opening == "namespace"
            depth += 1
        elif text == "}":
            outside -= depth == outside
            depth -= 1


def _require_calls(tokens: list[Token], rules: Rules, called: Set[str]) -> None:
    """Raises BackendError if the text calls anything but the interface's functions and its own
    values of callable types."""
    texts = [text for _, text, _ in tokens]
    own = set()
    for n, text in enumerate(texts[:-5]):
        if text in rules.callable_types and texts[n + 1] == "<" and texts[n + 3] == ">":
            if tokens[n + 4][0] != "word" or texts[n + 5] not in ("=", "("):
                _refuse(tokens[n][2], text, "it is declared with a value of the interface")
            own.add(texts[n + 4])
    for number, (kind, text, line) in enumerate(tokens[:-1]):
        if kind != "word" or texts[number + 1] != "(":
            continue
        within = texts[number - 2] if number > 1 and texts[number - 1] == "::" else ""
        known = f"{within}::{text}" if within else text
        if known not in called and (within or text not in own) and within != "fn":
            _refuse(line, text, f"a kernel calls nothing but its interface: {rules.what}")


def _refuse(line: int, text: str, why: str) -> NoReturn:
    raise BackendError("build", f"line {line}: `{text}` is not for a kernel: {why}")
