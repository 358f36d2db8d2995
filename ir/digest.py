"""Digests: short stable names of texts and specs."""

from __future__ import annotations

import hashlib

from ir.print import spec_text
from ir.spec import Spec

LENGTH = 16  # hexadecimal digits: 64 bits


def text_digest(text: str) -> str:
    """The first LENGTH hexadecimal digits of the text's SHA-256."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:LENGTH]


def spec_digest(spec: Spec) -> str:
    """The digest of a spec's canonical text: equal for equal specs, however they were written."""
    return text_digest(spec_text(spec))
