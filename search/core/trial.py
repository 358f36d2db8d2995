"""Trials: the parameter combinations with which a model's answer is timed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

# A parameter in a text. No supported language has a `$` before a name.
USE = re.compile(r"\$([A-Za-z_]\w*)")
Values = Mapping[str, str]  # by parameter name


@dataclass(frozen=True, slots=True)
class Template:
    """A model's answer with parameters: new file texts, and the values of each parameter."""

    files: Mapping[str, str]  # by file name, with `$NAME` at the place of a value
    parameters: Mapping[str, tuple[str, ...]]  # values by name, in order of preference
    why: str = ""  # in the model's words

    @property
    def count(self) -> int:
        """The number of combinations."""
        return prod(len(values) for values in self.parameters.values())

    def combinations(self) -> list[dict[str, str]]:
        """All combinations in order of preference: by the sum of the ranks of their values."""
        ranks = product(*(range(len(values)) for values in self.parameters.values()))
        return [
            {name: values[rank] for rank, (name, values) in zip(one, self.parameters.items())}
            for one in sorted(ranks, key=sum)
        ]

    def filled(self, values: Values) -> dict[str, str]:
        """The texts with all parameters replaced by values. `$` before any other name stays."""
        return {
            name: USE.sub(lambda use: values.get(use[1], use[0]), text)
            for name, text in self.files.items()
        }


@dataclass(frozen=True, slots=True)
class Trial:
    """Which combination of which answer a candidate is."""

    answer: int  # number of the request, as in its prompt
    values: Values
    template: Template | None = None  # only with the first candidate of an answer

    def __str__(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.values.items())

    def table(self) -> dict[str, Any]:
        """The trial as plain data."""
        found: dict[str, Any] = {"answer": self.answer, "values": dict(self.values)}
        if self.template is not None:
            found["files"] = dict(self.template.files)
            found["parameters"] = {n: list(v) for n, v in self.template.parameters.items()}
            found["why"] = self.template.why
        return found


def trial(table: Mapping[str, Any]) -> Trial:
    """The trial of a table that `Trial.table` made."""
    template = None
    if "files" in table:
        parameters = {name: tuple(values) for name, values in table["parameters"].items()}
        template = Template(table["files"], parameters, table["why"])
    return Trial(table["answer"], table["values"], template)
