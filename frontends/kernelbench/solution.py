"""A solution of KernelBench under construction: all of its file but the kernels. It needs no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from frontends.kernelbench.call_text import AGAIN, CallText
from frontends.kernelbench.parts import Constants, KernelText, ProblemCall
from frontends.kernelbench.sources import apart, names_of, without_docstring
from ir.network import Network


@dataclass(frozen=True, slots=True)
class Solution:
    """What a problem says of its `ModelNew`, as code."""

    # The problem's own text, from which `ModelNew` has its parameters, drawn in the same order.
    source: str
    call: ProblemCall

    def text(
        self,
        network: Network,
        kernels: Mapping[str, KernelText],
        constants: Constants | None = None,
        again: str = "",
    ) -> str:
        """The file's text.

        network: of the problem's spec, inputs and outputs in the spec's order of names.  kernels: of
        the network, by the spec's name.  constants: compute some inputs of the network; a kernel of both
        networks is that of `kernels`.  again: a text that makes launches again (`backends.backend.Repeats`).
        KernelError where a source defines no `launch`.
        """
        again = without_docstring(again) if again else f"{AGAIN} = None"
        used = {k.name: kernels[k.name] for k in network.kernels()}
        if constants:
            more = (k.name for k in constants.network.kernels())
            used = {n: constants.kernels[n] for n in more if n not in used} | used
        others = {n for t in (self.source, again, _runtime()) for n in names_of(t)}
        texts, launches = apart({n: one.source for n, one in used.items()}, others)
        call = CallText(self.call, network, used, launches, constants)
        forward = "\n".join(f"        {line}".rstrip() for line in call.forward())
        parts = [self.source.rstrip(), *texts, again, _runtime()]
        return "\n\n\n".join([*parts, *call.tables(), _MODEL + forward]) + "\n"


_MODEL = """class ModelNew(Model):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.requires_grad_(False)  # the kernels compute no gradients

    def forward(self, *args):
"""


@cache
def _runtime() -> str:
    """The text that runs steps."""
    return without_docstring(Path(__file__).with_name("steps.py").read_text(encoding="utf-8"))
