"""The settings of a search: what is searched for, where, how, and for how long."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from search.core.transferred import Transferred
from search.core.workload import WeightedShape

POLICY = "mcts"  # the first of docs/search_ablation.md
REQUESTS = 12  # to models, in flight at once
ANSWER_TOKENS = 16_000  # of one answer, what a model thinks included
WEIGH = "time"  # how a model's answer is counted beside an evaluation
STEPS = 6  # of a model in one exchange: drafts that are tried, documents that are read
TRIALS = 8  # combinations of an answer with parameters that are timed
BATCH = 8  # candidates of a generation; part of what a seed means, so not the number of workers
WINDOW = 128_000  # tokens of a context window, which the models of today have or exceed


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that the result of a search depends on, besides the machine and the toolchain."""

    kernel: str  # its name, for a person
    spec: str  # the text of its spec
    target: str
    # Names of those that are raced, the first being the target's own preference.
    backends: tuple[str, ...]
    sizes: Mapping[str, int]  # tuning sizes
    # Check sizes, at which results are compared with the reference.
    checks: tuple[Mapping[str, int], ...] = ()
    # Limits of the search; None: no limit.
    evaluations: int | None = 100
    seconds: float | None = None
    stagnation: int | None = None  # stop after this many evaluations without a gain
    roofline_share: float | None = 0.95  # stop at this share of the roofline
    policy: str = POLICY
    seed: int = 0
    batch: int = BATCH
    measures: tuple[str, ...] = ("on_chip", "traffic")
    # Text of an additional seed schedule; empty: none.
    schedule: str = ""
    # Text of the schedule that is first in place of the autoschedule, for the first backend. The untiled
    # schedule is not tried then. Empty: the autoschedule.
    seed_schedule: str = ""
    # Operators that may make children; empty: the default ones.
    operators: tuple[str, ...] = ()
    # Shapes that are timed instead of `sizes`, which are then those of the largest weight; empty:
    # one shape.
    workload: tuple[WeightedShape, ...] = ()
    dispatch: int = 1  # how many kernels may share the shapes of a workload
    target_speedup: float | None = None  # stop at this speed-up over the first candidate
    models: tuple[str, ...] = ()  # with their weights
    # Budget of the models; None: no limit.
    max_tokens: int | None = None
    max_cost: float | None = None
    window: int = WINDOW  # tokens that a model reads and writes in one exchange
    # Seed candidates that other searches found for the same kernel.
    transferred: tuple[Transferred, ...] = ()
    # By verb: the factor on the probability of its edits.
    preferences: Mapping[str, float] = field(default_factory=dict)
    lessons: tuple[str, ...] = ()  # documents for the prompts
    # What inputs and shapes of checks are drawn by; empty in runs of older versions.
    secret: str = ""
    # Operators of the module that the user leaves to PyTorch.
    left_to_torch: tuple[str, ...] = ()
    requests: int = REQUESTS  # to models, in flight at once
    answer_tokens: int = ANSWER_TOKENS  # of one answer at most
    effort: str = ""  # of a model that thinks, in the endpoint's words; empty: its own default
    weigh: str = WEIGH  # see weighing.py
    coach: bool = False  # whether the prompts evolve
    steps: int = STEPS  # that a model may take in one exchange before it answers
    trials: int = TRIALS  # combinations of an answer with parameters that are timed at most
    # Sums whose operands may be rounded to tf32: see `Spec`.
    rounded: tuple[str, ...] = ()
    # The job that the search is of, with the number of its first round: `night-1/3`; empty for none.
    job: str = ""

    @property
    def shapes(self) -> tuple[WeightedShape, ...]:
        """The shapes that are timed, at least one."""
        return self.workload or (WeightedShape(self.sizes),)

    def to_json(self) -> str:
        """One line of JSON; `settings` reads it."""
        return json.dumps(asdict(self), sort_keys=True)


def settings(text: str) -> Settings:
    """The settings that `Settings.to_json` wrote."""
    table = json.loads(text)
    if "backend" in table:  # older runs had one
        table["backends"] = (table.pop("backend"),)
    for name in ("backends", "checks", "measures", "operators", "models", "lessons"):
        table[name] = tuple(table[name])
    for name in ("left_to_torch", "rounded"):
        table[name] = tuple(table.get(name, ()))  # older runs had none
    table["workload"] = tuple(WeightedShape(**shape) for shape in table["workload"])
    table["transferred"] = tuple(Transferred(**f) for f in table["transferred"])
    return Settings(**table)
