"""Tokens of a text, estimated from above: what a budget must set aside before it is counted."""

from __future__ import annotations

import re

from search.llm.exchange import Request

PER_MESSAGE = 8  # what a message's frame takes, and room
_PLAIN = re.compile(r"[A-Za-z \n\t]")


def most_tokens(text: str) -> int:
    """An upper estimate: letters and blanks come at least in pairs, all else is by the byte.

    Vocabularies differ, so this is an estimate and no bound.
    """
    plain = len(_PLAIN.findall(text))
    size = len(text.encode("utf-8", "surrogatepass"))
    return size - plain + (plain + 1) // 2


def request_tokens(request: Request) -> int:
    """An upper estimate of what a request's messages take."""
    texts = [m.content + "".join(c.name + c.arguments for c in m.calls) for m in request.messages]
    texts += [t.name + t.description + t.argument + t.meaning for t in request.tools]
    return sum(most_tokens(text) + PER_MESSAGE for text in texts)
