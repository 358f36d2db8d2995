"""Faults: converts exceptions of the `openai` package to ModelError, without secrets."""

from __future__ import annotations

import re
from email.utils import parsedate_to_datetime
from types import ModuleType
from typing import Any

from search.llm.endpoint import BASE_URL, KEY, Endpoint
from search.llm.exchange import ModelError
from search.llm.reading import AnswerReading

QUOTED = 300  # characters of the endpoint's message that are quoted
STATUS = {
    401: "key",
    402: "quota",
    403: "key",
    404: "model",
    405: "protocol",
    408: "timeout",
    409: "server",
    425: "limit",
    429: "limit",
}
QUOTA = ("insufficient_quota", "billing_hard_limit_reached")
HINTS = {
    "key": f"set {KEY} to a key of this endpoint; nothing more is asked until then",
    "quota": "pay, or use another key; nothing more is asked until then",
    "model": f"see --model, and whether {BASE_URL} ends as it must, mostly in /v1",
    "protocol": f"set {BASE_URL} to the address of an OpenAI-compatible endpoint",
    "limit": "ask less at once, or less a minute",
    "connection": f"see whether the endpoint runs, and {BASE_URL}",
}


def fault(
    error: Exception, openai: ModuleType, endpoint: Endpoint, reading: AnswerReading
) -> ModelError:
    """The error, with the tokens that the endpoint reports as paid.

    If it reports none, none are counted, so that an outage does not use up the budget.
    """
    found = error if isinstance(error, ModelError) else _told(error, openai, endpoint)
    paid = reading.reported
    return found.costing(*paid, None if any(paid) else 0.0)


def _told(error: Exception, openai: ModuleType, endpoint: Endpoint) -> ModelError:
    kind, what = _kind(error, openai)
    if kind == "key":
        what += f": it does not take the key in {KEY}"  # Its message may contain a part of the key.
    elif words := _words(error, endpoint):
        what += f": {words}"
    return ModelError(
        kind,
        what,
        where=endpoint.shown,
        hint=HINTS.get(kind, ""),
        retry_after=_retry_after(error),
    )


def _kind(error: Exception, openai: ModuleType) -> tuple[str, str]:
    """The kind of an error, and the start of its message."""
    if isinstance(error, openai.APIStatusError):
        status = error.status_code
        kind = STATUS.get(status, "server" if status >= 500 else "request")
        if error.code in QUOTA or error.type in QUOTA:
            kind = "quota"
        return kind, f"the endpoint answers with status {status}"
    if isinstance(error, openai.APITimeoutError) or _is_timeout(error):
        return "timeout", "the endpoint was silent for too long"
    if isinstance(error, openai.APIConnectionError | OSError):
        cause = type(error.__cause__ or error).__name__
        return "connection", f"the connection failed ({cause})"
    if isinstance(error, openai.APIError):
        return "server", "the endpoint broke its answer off with an error"
    return "cut", "the answer cannot be read"


def _is_timeout(error: Exception) -> bool:
    """Whether a stream timed out: the package does not wrap the exceptions of its HTTP package."""
    return any(each.__name__ == "TimeoutException" for each in type(error).__mro__)


def _words(error: Exception, endpoint: Endpoint) -> str:
    """The endpoint's own message, on one line and without secrets."""
    body = getattr(error, "body", None)
    said = body.get("message") if isinstance(body, dict) else body
    if not isinstance(said, str):
        said = str(error)
    if isinstance(body, str) and "<html" in body.lower():
        return "a page for people"
    line = re.sub(r"\s+", " ", endpoint.scrubbed(said)).strip()
    return line if len(line) <= QUOTED else line[:QUOTED] + " ..."


def _retry_after(error: Any) -> float | None:
    """Seconds that an endpoint asks to wait; None if it does not say."""
    response = getattr(error, "response", None)
    if response is None:
        return None
    millis = response.headers.get("retry-after-ms", "")
    if re.fullmatch(r"\d+(\.\d+)?", millis):
        return float(millis) / 1000
    text = response.headers.get("retry-after", "")
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text)
    try:
        until, now = (parsedate_to_datetime(t) for t in (text, response.headers.get("date", "")))
        return max(0.0, (until - now).total_seconds())
    except (ValueError, TypeError):
        return None
