"""Reads pickles of a candidate's process, which construct plain values only and call nothing."""

from __future__ import annotations

import io
import pickle
from dataclasses import is_dataclass
from typing import Any

# The names that pickles of arrays, paths and plain values use, by module.
_NAMES = {
    "builtins": frozenset("set frozenset slice range complex bytearray".split()),
    "collections": frozenset(("OrderedDict",)),
    "pathlib": frozenset(("PosixPath", "PurePosixPath")),
    "numpy": frozenset(("ndarray", "dtype")),
    "numpy.core.multiarray": frozenset(("_reconstruct", "scalar")),
    "numpy._core.multiarray": frozenset(("_reconstruct", "scalar")),
    "numpy.core.numeric": frozenset(("_frombuffer",)),
    "numpy._core.numeric": frozenset(("_frombuffer",)),
    "_codecs": frozenset(("encode",)),  # bytes, in an array's state
}
_OWN = ("backends.", "ir.", "machines.")  # modules whose dataclasses are allowed


class _Plain(pickle.Unpickler):
    """Constructs arrays, plain values and the tree's own dataclasses."""

    def find_class(self, module: str, name: str) -> Any:
        if name in _NAMES.get(module, ()):
            return super().find_class(module, name)
        if module.startswith(_OWN) and name.isidentifier():
            found = super().find_class(module, name)
            if isinstance(found, type) and is_dataclass(found):
                return found
        raise pickle.UnpicklingError(f"`{module}.{name}` is no value")


def plain_value(data: bytes) -> Any:
    """The value of a pickle. Raises ValueError where it has other objects."""
    try:
        return _Plain(io.BytesIO(data)).load()
    except Exception as error:  # whatever a forged pickle does to the machine that reads it
        raise ValueError(f"{type(error).__name__}: {error}") from None
