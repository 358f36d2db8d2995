"""Costs: the prices of models' tokens, as given by the user."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ir.errors import KernelError

MILLION = 1_000_000
PLACES = 9  # decimals of a cost, so that sums do not depend on their order
OPTION = "--price"
ALLOWED = "MODEL=IN/OUT, in any currency per million tokens, or a file of prices"
EXAMPLE = f"for example {OPTION}=NAME=0.5/1.5; a file holds [NAME], in = 0.5 and out = 1.5"


@dataclass(frozen=True, slots=True)
class Price:
    """The price of a million input and a million output tokens."""

    tokens_in: float
    tokens_out: float

    def of(self, tokens_in: int, tokens_out: int) -> float:
        """The cost of some tokens."""
        return round((tokens_in * self.tokens_in + tokens_out * self.tokens_out) / MILLION, PLACES)


Prices = Mapping[str, Price]


def prices(words: Sequence[str]) -> dict[str, Price]:
    """The user's prices, each as MODEL=IN/OUT or as the path of a file; later ones override.

    Raises KernelError for a malformed price.
    """
    found: dict[str, Price] = {}
    for word in words:
        if "=" not in word:
            found |= _file(Path(word).expanduser())
            continue
        model, _, both = word.rpartition("=")
        paid_in, slash, paid_out = both.partition("/")
        if not (model and slash):
            raise _error(f"`{word}` is no price")
        found[model] = Price(_number(paid_in, word), _number(paid_out, word))
    return found


def _file(path: Path) -> dict[str, Price]:
    try:
        table: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _error(f"the file of prices `{path}` cannot be read: {error}") from error
    found = {}
    for model, row in table.items():
        where = f"[{model}] of {path}"
        if not isinstance(row, dict) or set(row) != {"in", "out"}:
            raise _error(f"{where} does not hold `in` and `out`, and only these")
        found[model] = Price(_number(row["in"], where), _number(row["out"], where))
    return found


def _number(given: Any, where: str) -> float:
    try:
        price = -1.0 if isinstance(given, bool) else float(given)
    except (ValueError, TypeError):
        price = -1.0
    if not (math.isfinite(price) and price >= 0):
        raise _error(f"`{given}` in `{where}` is no price")
    return price


def _error(what: str) -> KernelError:
    return KernelError(what, where=OPTION, allowed=ALLOWED, hint=EXAMPLE)
