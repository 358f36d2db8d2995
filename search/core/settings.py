"""The settings of a search: what is searched for, where, how, and for how long."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from search.core.transferred import Transferred
from search.core.workload import Shape

POLICY = "mcts"  # the first of docs/search_ablation.md
BATCH = 8  # candidates of a generation; part of what a seed means, so not the number of workers


@dataclass(frozen=True, slots=True)
class Settings:
    """All that a search's result depends on, beside the machine and the toolchain.

    kernel: its name, for a person.  spec: the text of its spec.  sizes: those that are timed.
    checks: those at which results are compared with the reference.  evaluations, seconds: when
    to stop; None for no limit.  stagnation: stop after so many evaluations without a gain.
    roofline_share: stop when this share of the machine's bound is reached.  schedule: the text
    of one that the search starts from too; empty for none.  operators: those that may make
    children; empty for the usual ones.  workload: several shapes that are timed instead of
    `sizes`, which are then those of the largest weight; empty for one.  dispatch: how many kernels
    may share the shapes of a workload.  target_speedup: stop when the best is so many times
    as fast as the first.  models: those that are asked, with their weights.  max_tokens,
    max_cost: what their answers may take; None for no limit.  transferred: what other searches found
    for the same kernel, which this one starts from too.  preferences: how much likelier a verb's
    edits are drawn than they would be, by verb.  lessons: documents that models are told.
    left_to_torch: operators of the kernel's module that PyTorch computes, as the user wished.
    """

    kernel: str
    spec: str
    target: str
    backend: str
    sizes: Mapping[str, int]
    checks: tuple[Mapping[str, int], ...] = ()
    evaluations: int | None = 100
    seconds: float | None = None
    stagnation: int | None = None
    roofline_share: float = 0.95
    policy: str = POLICY
    seed: int = 0
    batch: int = BATCH
    measures: tuple[str, ...] = ("scratch", "traffic")
    schedule: str = ""
    operators: tuple[str, ...] = ()
    workload: tuple[Shape, ...] = ()
    dispatch: int = 1
    target_speedup: float | None = None
    models: tuple[str, ...] = ()
    max_tokens: int | None = None
    max_cost: float | None = None
    transferred: tuple[Transferred, ...] = ()
    preferences: Mapping[str, float] = field(default_factory=dict)
    lessons: tuple[str, ...] = ()
    left_to_torch: tuple[str, ...] = ()

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """The shapes that are timed, at least one."""
        return self.workload or (Shape(self.sizes),)

    def to_json(self) -> str:
        """One line of JSON; `settings` reads it."""
        table = asdict(self)
        table["external"] = table.pop("transferred")  # its name in every store that there is
        return json.dumps(table, sort_keys=True)


def settings(text: str) -> Settings:
    """The settings that `Settings.to_json` wrote."""
    table = json.loads(text)
    for name in ("checks", "measures", "operators", "models", "lessons"):
        table[name] = tuple(table[name])
    table["left_to_torch"] = tuple(table.get("left_to_torch", ()))  # older runs left none
    table["workload"] = tuple(Shape(**shape) for shape in table["workload"])
    table["transferred"] = tuple(Transferred(**f) for f in table.pop("external"))
    return Settings(**table)
