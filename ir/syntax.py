"""Python's parser, made safe for threads."""

from __future__ import annotations

import ast
import os
import threading
import warnings

# CPython before 3.11.8 counts the depth of all trees being built in one place, and raises
# SystemError if two threads build one (python/cpython#106905).
_ALONE = threading.Lock()
os.register_at_fork(
    before=_ALONE.acquire, after_in_parent=_ALONE.release, after_in_child=_ALONE.release
)


def syntax_tree(text: str) -> ast.Module:
    """The syntax tree of a text, without warnings (`1if` would give one).

    Raises SyntaxError, ValueError, RecursionError, MemoryError and OverflowError, as `ast.parse`
    does.
    """
    with _ALONE, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)
