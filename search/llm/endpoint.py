"""An endpoint: the address for requests to models, its key, and time limits."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit, urlunsplit

from ir.errors import KernelError

BASE_URL = "OPENAI_BASE_URL"
KEY = "OPENAI_API_KEY"
SILENCE = 600.0  # seconds; a model may reason for minutes before its first word
DEADLINE = 1800.0
DEFAULT_URL = "https://api.openai.com/v1"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An endpoint with the OpenAI chat completions protocol."""

    base_url: str
    key: str = field(repr=False)
    silence: float = SILENCE  # longest wait for the next part of an answer, in seconds
    deadline: float = DEADLINE  # longest time for the whole answer, in seconds
    stream: bool = True  # whether answers are streamed

    @property
    def shown(self) -> str:
        """The address without parts that may be secret."""
        parts = urlsplit(self.base_url)
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))

    def scrubbed(self, text: str) -> str:
        """A text without the endpoint's secrets."""
        secrets = [self.key, urlsplit(self.base_url).password or ""]
        for secret in (s for s in secrets if s):
            text = text.replace(secret, "***")
        return text


def endpoint(variables: Mapping[str, str]) -> Endpoint | None:
    """The endpoint in the environment variables; None if there is no key.

    Raises KernelError for a malformed key or address.
    """
    key = variables.get(KEY, "").strip()
    if not key:
        return None
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise KernelError(
            "the key contains characters that are not allowed",
            where=KEY,
            allowed="printable ASCII characters without blanks",
            hint="set it again, without quotes or line breaks",
        )
    base = variables.get(BASE_URL, "").strip() or DEFAULT_URL
    if not _is_address(base):
        shown = re.sub("//.*@", "//***@", base).replace(key, "***")
        raise KernelError(
            f"`{shown}` is no address of an endpoint",
            where=BASE_URL,
            allowed="http:// or https:// with a host",
            hint=f"for example {BASE_URL}={DEFAULT_URL}",
        )
    return Endpoint(base, key)


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
