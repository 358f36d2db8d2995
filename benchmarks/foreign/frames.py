"""Frames: values and tensors between the judge and a solution's process, as JSON and raw bytes.

Data from the solution's process are untrusted. Nothing is unpickled, and every length is checked
against the announced one and the receiver's limit.
"""

from __future__ import annotations

import json
import socket
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import torch

from frontends.dtypes import NAMES

MOST_HEADER = 1 << 20  # Bytes.
_LENGTH = struct.Struct("<Q")
_DTYPES = {str(dtype): dtype for dtype in NAMES}
# No subclass: it may hold nothing, and compute when it is read, after the clock has stopped.
TENSORS = (torch.Tensor, torch.nn.Parameter)
_PLAIN = (bool, int, float, str, type(None))


class BadFrame(Exception):
    """The received data are not a frame."""


class Ended(Exception):
    """The other end closed the line."""


@dataclass(slots=True)
class Line:
    """One end of a socket."""

    socket: socket.socket

    def send(self, table: dict[str, Any], values: Any = None, seconds: float | None = None) -> None:
        """Sends a table of plain values, and a structure of tensors. seconds: limit, after which it
        raises TimeoutError."""
        tensors: list[torch.Tensor] = []
        tree = _packed(values, tensors)
        forms = [[str(t.dtype), list(t.shape)] for t in tensors]
        head = json.dumps({**table, "tree": tree, "tensors": forms}).encode()
        self.socket.settimeout(seconds)
        try:
            self.socket.sendall(_LENGTH.pack(len(head)) + head)
            for tensor in tensors:
                self.socket.sendall(_bytes(tensor))
        except (BrokenPipeError, ConnectionResetError):
            raise Ended from None

    def receive(
        self, most: int | None = None, seconds: float | None = None
    ) -> tuple[dict[str, Any], Any]:
        """Receives the next table and structure.

        most: limit of the tensors in bytes. seconds: limit, after which it raises TimeoutError,
        even with a partial frame.
        """
        end = None if seconds is None else time.monotonic() + seconds
        (length,) = _LENGTH.unpack(self._exactly(_LENGTH.size, end))
        if length > MOST_HEADER:
            raise BadFrame("its header is too long")
        try:
            table = json.loads(self._exactly(length, end).decode())
            forms = [(_DTYPES[d], [int(n) for n in shape]) for d, shape in table.pop("tensors")]
            tree = table.pop("tree")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise BadFrame(f"its header says {type(error).__name__}") from None
        sizes = [prod(shape) * dtype.itemsize for dtype, shape in forms]
        if any(n < 0 for _, shape in forms for n in shape):
            raise BadFrame("a tensor has a negative size")
        if most is not None and sum(sizes) > most:
            raise BadFrame(f"it announces {sum(sizes)} bytes, {most} are taken")
        tensors = [
            _tensor(self._exactly(size, end), dtype, shape)
            for size, (dtype, shape) in zip(sizes, forms, strict=True)
        ]
        return table, _unpacked(tree, tensors)

    def _exactly(self, count: int, end: float | None) -> bytearray:
        """Receives so many bytes, in any number of pieces."""
        found = bytearray(count)
        view, at = memoryview(found), 0
        while at < count:
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                raise TimeoutError
            self.socket.settimeout(left)
            try:
                got = self.socket.recv_into(view[at:])
            except ConnectionResetError:
                got = 0
            if not got:
                raise Ended
            at += got
        return found


def _bytes(tensor: torch.Tensor) -> memoryview:
    flat = tensor.detach().resolve_neg().cpu().contiguous().reshape(-1)
    return memoryview(flat.view(torch.uint8).numpy()) if flat.numel() else memoryview(b"")


def _tensor(data: bytearray, dtype: torch.dtype, shape: Sequence[int]) -> torch.Tensor:
    if not data:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(data, dtype=torch.uint8).view(dtype).reshape(shape)


def is_sent(value: Any) -> bool:
    """Whether a value is a tensor that a line can transfer."""
    return (
        type(value) in TENSORS
        and str(value.dtype) in _DTYPES
        and value.layout == torch.strided
        and not value.is_meta
    )


def _packed(value: Any, tensors: list[torch.Tensor]) -> Any:
    """Converts a structure to JSON. Tensors become indices into a list."""
    if is_sent(value):
        tensors.append(value)
        return {"tensor": len(tensors) - 1}
    if type(value) in TENSORS:
        return {"other": f"a tensor of {value.dtype} on {value.device}"}
    if isinstance(value, list | tuple):
        kind = "list" if isinstance(value, list) else "tuple"
        return {kind: [_packed(v, tensors) for v in value]}
    if isinstance(value, dict) and all(isinstance(k, str) for k in value):
        return {"dict": [[k, _packed(v, tensors)] for k, v in value.items()]}
    if isinstance(value, _PLAIN):
        return {"value": value}
    return {"other": type(value).__name__}


def _unpacked(tree: Any, tensors: Sequence[torch.Tensor], depth: int = 0) -> Any:
    if depth > 16:
        raise BadFrame("its structure is too deep")
    try:
        ((kind, held),) = tree.items()
        if kind == "tensor":
            return tensors[held]
        if kind in ("list", "tuple"):
            made = [_unpacked(v, tensors, depth + 1) for v in held]
            return made if kind == "list" else tuple(made)
        if kind == "dict":
            return {k: _unpacked(v, tensors, depth + 1) for k, v in held}
        if kind == "value":
            return held
        if kind == "other":
            return Other(str(held)[:80])
    except (ValueError, TypeError, AttributeError, IndexError):
        pass
    raise BadFrame("its structure is none")


@dataclass(frozen=True, slots=True)
class Other:
    """A returned value that is neither a tensor nor a plain value."""

    name: str
