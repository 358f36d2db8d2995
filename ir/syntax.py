"""Python's parser, for any thread."""

from __future__ import annotations

import ast
import os
import threading
import warnings

# CPython 3.11 counts the depth of all trees that are made at a time in one place, and raises
# SystemError where two threads make one (python/cpython#106905, mended in 3.11.8).
_ALONE = threading.Lock()
os.register_at_fork(
    before=_ALONE.acquire, after_in_parent=_ALONE.release, after_in_child=_ALONE.release
)


def syntax_tree(text: str) -> ast.Module:
    """The syntax tree of a text, without warnings (`1if` and the like would warn).

    As `ast.parse` it raises SyntaxError, ValueError, RecursionError, MemoryError, OverflowError.
    """
    with _ALONE, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)
