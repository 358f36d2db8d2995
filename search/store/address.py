"""The address of a store: the path of an SQLite file or a database's URL, shown without its
password.

It imports no package, so that the command can hide passwords before it opens a store.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from ir.errors import KernelError

SQLITE, POSTGRESQL = "sqlite", "postgresql"
SCHEMES = {"sqlite": SQLITE, "postgresql": POSTGRESQL, "postgresql+psycopg": POSTGRESQL}
ALLOWED = "the path of a file, or postgresql://USER@HOST:PORT/DATABASE"
_PARTS = re.compile(
    r"(?P<scheme>[^:/?#@\s]+)://(?:(?P<user>[^:/?#@]*)(?::(?P<password>[^/?#@]*))?@)?"
    r"(?P<host>[^/?#@]*)(?P<path>/[^?#@]*)?(?:\?(?P<query>[^#@]*))?"
)
# The part of a malformed URL that may be a password: up to the last `@`, because a password may
# contain any character.
_CREDENTIALS = re.compile(r"(://[^:/?#@]*):.*@", re.DOTALL)
_SECRET = re.compile(r"(?<=[?&])(password|sslpassword)=([^&]*)(&|$)")


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a store."""

    kind: str  # SQLITE or POSTGRESQL
    url: str  # URL of a database, which may hold a password, or path of an SQLite file

    @property
    def shown(self) -> str:
        """The address for messages, logs, reports and commands. It is also a valid address."""
        return without_password(self.url)

    def scrubbed(self, text: str) -> str:
        """A text, such as a driver's message, without the password of this address."""
        for secret in sorted(_secrets(self.url), key=len, reverse=True):
            text = text.replace(secret, "***")
        return text


def is_url(text: str) -> bool:
    """Whether a store is a database's URL and not the path of a file."""
    return "://" in text


def address_of(text: str) -> Address:
    """The address that a user gave. Raises KernelError if it is not a valid address of a store."""
    if not is_url(text):
        return Address(SQLITE, str(Path(text).expanduser().absolute()))
    shown = without_password(text)
    scheme = text.partition("://")[0].lower()
    if scheme not in SCHEMES:
        raise KernelError(
            f"not a store that can be used here: there are no stores of kind `{scheme}`",
            where=shown,
            allowed=ALLOWED,
            hint="give another with --store",
        )
    if SCHEMES[scheme] == SQLITE:
        return Address(SQLITE, text)
    found = _PARTS.fullmatch(text)
    if found is None:
        raise KernelError(
            "not the address of a database",
            where=shown,
            allowed=ALLOWED,
            hint="in a user's name or password write %40 for @, %2F for /, %3A for :, %3F for ?, "
            "%23 for #",
        )
    port = re.search(r":([^:\]]*)$", found["host"])
    if "," not in found["host"] and port and not re.fullmatch(r"\d{1,5}", port[1]):
        raise KernelError(
            f"`{port[1]}` is no port",
            where=shown,
            allowed=ALLOWED,
            hint="a port is a number; without one it is 5432",
        )
    if not unquote((found["path"] or "").lstrip("/")):
        raise KernelError(
            "the address names no database",
            where=shown,
            allowed=ALLOWED,
            hint="add the database's name; `createdb NAME` makes one",
        )
    return Address(POSTGRESQL, text)


def without_password(text: str) -> str:
    """A URL without its password; any other text unchanged. Idempotent."""
    if not is_url(text):
        return text
    found = _PARTS.fullmatch(text)
    if found is None:
        text = _CREDENTIALS.sub(r"\1@", text)
    elif found["password"] is not None:
        text = text[: found.start("password") - 1] + text[found.end("password") :]
    kept = _SECRET.sub("", text)
    return kept.rstrip("?&") if kept != text else text


def word_without_password(word: str) -> str:
    """A word of a command line, such as `--store=URL`, without the password in its URL."""
    option, equals, value = word.partition("=")
    if option.startswith("--") and equals:
        return option + equals + without_password(value)
    return without_password(word)


def _secrets(url: str) -> set[str]:
    """All spellings of the passwords in a URL."""
    found = _PARTS.fullmatch(url)
    if found is None:
        return set()
    given = [found["password"] or ""]
    given += [value for _, value, _ in _SECRET.findall("?" + (found["query"] or ""))]
    return {word for each in given for word in (each, unquote(each)) if word}
