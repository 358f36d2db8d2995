"""Trials: the combinations of values that a model's answer with parameters is timed with."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

# A parameter in a text. No language of ours has a `$` before a name.
USE = re.compile(r"\$([A-Za-z_]\w*)")
Values = Mapping[str, str]  # by the name of a parameter


@dataclass(frozen=True, slots=True)
class Template:
    """What a model answered: new texts of files with parameters, and what these may be."""

    files: Mapping[str, str]  # by name, with `$NAME` where a value goes
    parameters: Mapping[str, tuple[str, ...]]  # values by name, each list by preference
    why: str = ""  # in the model's words

    @property
    def count(self) -> int:
        """The number of combinations."""
        return prod(len(values) for values in self.parameters.values())

    def combinations(self) -> list[dict[str, str]]:
        """All of them, the preferred first: by how far their values are from the first ones."""
        ranks = product(*(range(len(values)) for values in self.parameters.values()))
        return [
            {name: values[rank] for rank, (name, values) in zip(one, self.parameters.items())}
            for one in sorted(ranks, key=sum)
        ]

    def filled(self, values: Values) -> dict[str, str]:
        """The texts with a value in place of each parameter; `$` before another name stays."""
        return {
            name: USE.sub(lambda use: values.get(use[1], use[0]), text)
            for name, text in self.files.items()
        }


@dataclass(frozen=True, slots=True)
class Trial:
    """Which combination of which answer a candidate is."""

    answer: int  # the number of the request, as its prompt has it
    values: Values
    template: Template | None = None  # with the first candidate of an answer only

    def __str__(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.values.items())

    def table(self) -> dict[str, Any]:
        """It as plain data."""
        found: dict[str, Any] = {"answer": self.answer, "values": dict(self.values)}
        if self.template is not None:
            found["files"] = dict(self.template.files)
            found["parameters"] = {n: list(v) for n, v in self.template.parameters.items()}
            found["why"] = self.template.why
        return found


def trial(table: Mapping[str, Any]) -> Trial:
    """The trial that `Trial.table` wrote."""
    template = None
    if "files" in table:
        parameters = {name: tuple(values) for name, values in table["parameters"].items()}
        template = Template(table["files"], parameters, table["why"])
    return Trial(table["answer"], table["values"], template)
