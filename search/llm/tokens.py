"""Upper estimates of the tokens of a text, for reservations of a budget."""

from __future__ import annotations

import re

from search.llm.exchange import Request

PER_MESSAGE = 8  # tokens of a message's frame, with a margin
_PLAIN = re.compile(r"[A-Za-z \n\t]")


def most_tokens(text: str) -> int:
    """An upper estimate: one token for two letters or blanks, and one for each other byte.

    Vocabularies differ, so it is an estimate and not a bound.
    """
    plain = len(_PLAIN.findall(text))
    size = len(text.encode("utf-8", "surrogatepass"))
    return size - plain + (plain + 1) // 2


def request_tokens(request: Request) -> int:
    """An upper estimate of the tokens of a request's messages and tools."""
    texts = [m.content + "".join(c.name + c.arguments for c in m.calls) for m in request.messages]
    texts += [t.name + t.description + t.argument + t.meaning for t in request.tools]
    return sum(most_tokens(text) + PER_MESSAGE for text in texts)
