"""Messages on a stream: the length in four bytes, followed by the bytes."""

from __future__ import annotations

import struct
from socket import socket

_LENGTH = struct.Struct("<I")
MOST = 1 << 28  # bytes of a message


class Ended(Exception):
    """The other process has ended."""


class Malformed(Exception):
    """The other process sent an invalid message."""


def send(place: socket, message: bytes) -> None:
    """Sends one message. Raises Ended if there is no receiver."""
    try:
        place.sendall(_LENGTH.pack(len(message)) + message)
    except OSError:
        raise Ended("it ended") from None


def receive(place: socket, most: int = MOST) -> bytes:
    """The next message. Raises Ended if there is none, Malformed if it has more than `most`
    bytes."""
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
