"""The languages of specs and schedules as text for prompts, from the tables that define them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from ir.functions import POINTWISE, REDUCTIONS, SCANS
from ir.lower.verb_table import Verb
from ir.lower.verbs import MOST_UNROLLED
from ir.machine import Machine
from ir.nest.nest import HINTS, WAYS
from ir.spec import DTYPES, INNER
from ir.variant.derived import TRIPLE
from ir.variant.precision import NARROW
from search.prompt.render import rendered


def values(verbs: Sequence[Verb], machine: Machine) -> dict[str, str]:
    """The words for the kinds of subjects and values of some verbs."""
    narrow = (NARROW, TRIPLE) if machine.has_matrix(NARROW) else ()
    every = {
        "dtype": ", ".join(("f32", "that of an input", *narrow)),
        "engine": ", ".join(machine.rendered_engines),
        "flattened": "an index of a result",
        "hint": ", ".join(HINTS),
        "index": "an index of the equations",
        "level": ", ".join(n for n in ("grid", "loop") if n == "loop" or n in machine.levels),
        "loop": "`i.outer` of an index `i` that has a tile",
        "order": "the dimensions by the names of their indices, joined by `_`, as `n_k`",
        "place": "grid, or `i.outer` of an index that has a tile",
        "positive": "a whole number from 1 on",
        "reduction": "a tensor that a reduction computes",
        "shape": "of a matrix instruction, as `m16n8k16`",
        "short": f"an index that is reduced over at most {MOST_UNROLLED} positions",
        "tensor": "a tensor of the equations",
        "unit": ", ".join(name for name in machine.units if name != "special"),
        "way": ", ".join(WAYS),
    }
    used = {kind for v in verbs for kind in (v.subject, *v.needs.values(), *v.may.values())}
    return {kind: every[kind] for kind in sorted(used)}


@cache
def grammar() -> str:
    """The language of equations with its functions."""
    operators = dict.fromkeys(f.operator for f in POINTWISE.values() if f.operator)
    called = [name for name, f in POINTWISE.items() if not f.operator]
    return rendered(
        "grammar",
        dtypes=[name for name in DTYPES if name not in INNER],
        operators=operators,
        functions=called,
        reductions=REDUCTIONS,
        scans=SCANS,
    )
