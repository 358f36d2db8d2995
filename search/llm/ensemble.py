"""An ensemble of models: each request goes to one of them, drawn by weight."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from ir.errors import KernelError
from search.core.quantity import positive

OPTION = "--model"


@dataclass(frozen=True, slots=True)
class Ensemble:
    """Models with the weights of their requests."""

    models: tuple[str, ...]  # as the endpoint names them
    weights: tuple[float, ...]  # positive, one for each model

    def __post_init__(self) -> None:
        if not self.models or len(self.models) != len(self.weights):
            raise ValueError(f"each model has a weight: {self.models}, {self.weights}")

    def draw(self, rng: random.Random) -> str:
        """Draws the name of a model."""
        return rng.choices(self.models, self.weights)[0]


def ensemble(words: Sequence[str]) -> Ensemble:
    """The models of the user's options: `a`, `a:2,b:1`, or several such texts.

    A number after the last colon is a weight; other text is part of the name. Raises KernelError
    for a malformed text, or for a model that is named twice.
    """
    found: dict[str, float] = {}
    for part in (p.strip() for word in words for p in word.split(",")):
        name, weight = _part(part)
        if not name:
            raise _error(f"`{part}` names no model")
        if name in found:
            raise _error(f"`{name}` is named twice")
        if not positive(weight):
            raise _error(f"`{part}` has a weight that is not positive")
        found[name] = weight
    if not found:
        raise _error("no model is named")
    return Ensemble(tuple(found), tuple(found.values()))


def _part(text: str) -> tuple[str, float]:
    name, colon, weight = text.rpartition(":")
    try:
        return (name, float(weight)) if colon else (text, 1.0)
    except ValueError:
        return text, 1.0


def _error(what: str) -> KernelError:
    return KernelError(
        what,
        where=OPTION,
        allowed="NAME, NAME:WEIGHT, and several of these with commas",
        hint=f"for example {OPTION}=NAME, or {OPTION}=NAME:2,OTHER:1",
    )
