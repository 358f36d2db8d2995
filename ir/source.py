"""A source text: its lines, its syntax tree, and errors located in it."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterable
from typing import Any

from ir.errors import KernelError, SourceRange
from ir.syntax import syntax_tree

LONGEST = 200_000  # characters
_LINE_END = re.compile(r"\r\n|\r|\n")  # the line ends of Python's tokenizer


class Source:
    """One text and where it came from."""

    def __init__(self, text: str, where: str = ""):
        self.text = text
        self.where = where
        self.lines = _LINE_END.split(text)

    def tree(self) -> list[ast.stmt]:
        """The statements of the text. Raises KernelError if it is not Python syntax."""
        if len(self.text) > LONGEST:
            raise KernelError(
                f"the text has {len(self.text)} characters",
                where=self.where,
                allowed=f"at most {LONGEST}",
                hint="split it into several files",
            )
        try:
            return syntax_tree(self.text).body
        except SyntaxError as e:
            line = min(max(e.lineno or 1, 1), len(self.lines))
            column = min(max((e.offset or 1) - 1, 0), len(self.lines[line - 1]))
            place = self._place(line, column, column + 1)
            what = f"this does not read: {e.msg}"
        except (RecursionError, MemoryError, ValueError, OverflowError) as e:
            place = self._place(1, 0, len(self.lines[0]))
            what = f"this text cannot be read: {str(e) or 'it is nested too deeply'}"
        raise KernelError(
            what,
            place=place,
            where=self.where,
            allowed="the syntax of Python, one equation or decision a line",
            hint="look at the brackets, the commas and the indentation near the caret",
        )

    def place(self, node: Any) -> SourceRange:
        """The position of a node; a multi-line node ends with its first line."""
        line, column = node.lineno, self._column(node.lineno, node.col_offset)
        if node.end_lineno != line:
            return self._place(line, column, len(self.lines[line - 1]))
        return self._place(line, column, self._column(line, node.end_col_offset))

    def fault(
        self, node: ast.AST | None, what: str, *, allowed: str = "", hint: str = ""
    ) -> KernelError:
        """An error at a node, or at the first line if there is no node."""
        place = self.place(node) if node is not None else self._place(1, 0, 1)
        return KernelError(what, place=place, where=self.where, allowed=allowed, hint=hint)

    def written(self, node: ast.AST) -> str:
        """The text of a node, shortened to 40 characters of its first line."""
        place = self.place(node)
        found = place.text[place.column : place.end]
        return found if len(found) <= 40 else found[:37] + "..."

    def _place(self, line: int, column: int, end: int) -> SourceRange:
        # A tab counts as one column, so show it as one space: the caret then points at the right
        # column.
        return SourceRange(line, column, end, self.lines[line - 1].replace("\t", " "))

    def _column(self, line: int, offset: int) -> int:
        """The column in characters for an offset in UTF-8 bytes."""
        text = self.lines[line - 1]
        if text.isascii():
            return offset
        return len(text.encode()[:offset].decode(errors="ignore"))


def near(word: str, words: Iterable[str], otherwise: str = "") -> str:
    """A hint that names the most similar of `words`; `otherwise` if none is similar."""
    close = difflib.get_close_matches(word, list(words), 1, 0.6)
    return f"did you mean `{close[0]}`?" if close else otherwise
