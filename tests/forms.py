"""Forms: the specs of `testdata/forms`, shapes that modules of other frameworks come in.

All their sizes are numbers. A file holds several, one after the other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from backends.backend import Built
from backends.measure import check
from backends.registry import backend
from ir.autoschedule.autoschedule import autoschedule
from ir.lower.lower import lower
from ir.machine import Machine
from ir.nest.nest import LoopNest
from ir.parse.parse import parse_spec
from ir.spec import Spec

FOLDER = Path(__file__).parent / "testdata" / "forms"
SEED = 3


def texts() -> Mapping[str, str]:
    """The text of each form, by its file's name and its own."""
    found = {}
    for file in sorted(FOLDER.glob("*.kir")):
        for text in re.split(r"\n(?=def )", file.read_text(encoding="utf-8")):
            found[f"{file.stem}.{text[4 : text.index('(')]}"] = text
    return found


TEXTS = texts()


def form(name: str) -> Spec:
    """A form by its name."""
    return parse_spec(TEXTS[name], name)


def narrowed(name: str, dtype: str) -> Spec:
    """A form whose inputs and outputs of f32 are of a narrower dtype."""
    signature, body = TEXTS[name].split("\n", 1)
    return parse_spec(f"{signature.replace('f32[', f'{dtype}[')}\n{body}", name)


def scheduled(spec: Spec, machine: Machine) -> LoopNest:
    """The nest of a spec's autoschedule."""
    return lower(spec, autoschedule(spec, machine, {}), machine, {})


def built(nest: LoopNest, machine: Machine, folder: Path) -> Built:
    """What the machine's backend builds of a nest."""
    own = backend(machine.backends[0])
    return own.build(own.emit(nest, machine), nest, machine, folder)


def require_right(made: Built, nest: LoopNest, machine: Machine) -> None:
    """Runs what was built; BackendError where a result is wrong."""
    own = backend(machine.backends[0])
    check(own, made, nest, machine, nest.spec, {}, SEED, repeat=False)
