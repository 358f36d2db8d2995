"""Compiles Python files: each two arguments are a source and where its bytecode goes.

An argument `@FILE` stands for the lines of a file. The bytecode is taken without a look at the source
(PEP 552), and holds no name of the folder that it was made in.
"""

import pathlib
import py_compile
import sys
from collections.abc import Iterator, Sequence


def arguments(given: Sequence[str]) -> Iterator[str]:
    """All arguments, with the lines of files in place of their names."""
    for word in given:
        if word.startswith("@"):
            yield from pathlib.Path(word[1:]).read_text().splitlines()
        else:
            yield word


def main(given: Sequence[str]) -> None:
    """Compiles all; an error in one ends it."""
    words = list(arguments(given))
    for source, made in zip(words[::2], words[1::2], strict=True):
        py_compile.compile(
            source,
            made,
            dfile=pathlib.PurePath(source).name,
            doraise=True,
            invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
        )


if __name__ == "__main__":
    main(sys.argv[1:])
