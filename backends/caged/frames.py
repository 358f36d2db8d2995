"""Messages on a stream: their length in four bytes, then so many bytes."""

from __future__ import annotations

import struct
from socket import socket

_LENGTH = struct.Struct("<I")
MOST = 1 << 28  # bytes of a message


class Ended(Exception):
    """The other side has ended."""


class Malformed(Exception):
    """The other side sent what is no message."""


def send(place: socket, message: bytes) -> None:
    """Sends one message; Ended where nobody is there."""
    try:
        place.sendall(_LENGTH.pack(len(message)) + message)
    except OSError:
        raise Ended("it ended") from None


def receive(place: socket, most: int = MOST) -> bytes:
    """The next message; Ended where none comes, Malformed where it has more bytes than `most`."""
    (length,) = _LENGTH.unpack(_bytes(place, _LENGTH.size))
    if length > most:
        raise Malformed(f"it sent {length} bytes where at most {most} are expected")
    return _bytes(place, length)


def _bytes(place: socket, count: int) -> bytes:
    parts = []
    while count:
        try:
            part = place.recv(min(count, 1 << 20))
        except OSError:
            part = b""
        if not part:
            raise Ended("it ended")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)
