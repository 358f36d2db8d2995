"""The settings of a search: the kernel, the targets, the method and the limits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from search.core.transferred import Transferred
from search.core.workload import WeightedShape

POLICY = "mcts"  # the best policy of docs/search_ablation.md
REQUESTS = 12  # requests to models in flight at once
ANSWER_TOKENS = 16_000  # tokens of one answer, including the model's reasoning
WEIGH = "time"  # how the cost of a model's answer is compared with that of an evaluation
STEPS = 6  # steps of a model in one exchange: drafts that are tried, documents that are read
TRIALS = 8  # parameter combinations of an answer that are timed
# candidates of a generation. A seed's result depends on it, so it is not the number of workers.
BATCH = 8
WINDOW = 128_000  # tokens of a context window; current models have at least this many


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that determines the result of a search, except the machine and the toolchain."""

    kernel: str  # name, for a person
    spec: str  # text of the spec
    target: str
    # Names of the backends in the race; the first is the target's preferred one.
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
    # Text of the schedule that the first backend starts with, in place of the autoschedule. The
    # search then does not try the untiled schedule. Empty: the autoschedule.
    seed_schedule: str = ""
    # Operators that may make children; empty: the default ones.
    operators: tuple[str, ...] = ()
    # Shapes that are timed in place of `sizes`; `sizes` is then the shape with the largest weight.
    # Empty: one shape.
    workload: tuple[WeightedShape, ...] = ()
    dispatch: int = 1  # largest number of kernels that share the shapes of a workload
    target_speedup: float | None = None  # stop at this speed-up over the first candidate
    models: tuple[str, ...] = ()  # names with weights
    # Budget of the models; None: no limit.
    max_tokens: int | None = None
    max_cost: float | None = None
    window: int = WINDOW  # tokens of input and output in one exchange
    # Seed candidates from other searches for the same kernel.
    transferred: tuple[Transferred, ...] = ()
    # Factors on the probability of edits, by verb.
    preferences: Mapping[str, float] = field(default_factory=dict)
    lessons: tuple[str, ...] = ()  # documents for the prompts
    # Seed text for the inputs and shapes of checks; empty in runs of older versions.
    secret: str = ""
    # Operators of the module that the user leaves to PyTorch.
    left_to_torch: tuple[str, ...] = ()
    requests: int = REQUESTS  # requests to models in flight at once
    answer_tokens: int = ANSWER_TOKENS  # most tokens of one answer
    effort: str = ""  # reasoning effort, in the endpoint's words; empty: the endpoint's default
    weigh: str = WEIGH  # see weighing.py
    coach: bool = False  # whether the prompts evolve
    steps: int = STEPS  # steps that a model may take in one exchange before it answers
    trials: int = TRIALS  # largest number of timed parameter combinations of an answer
    # Sums whose operands may be rounded to tf32: see `Spec`.
    rounded: tuple[str, ...] = ()
    # The job of this search with the number of its first round, such as `night-1/3`; empty: none.
    job: str = ""

    @property
    def shapes(self) -> tuple[WeightedShape, ...]:
        """The timed shapes, at least one."""
        return self.workload or (WeightedShape(self.sizes),)

    def to_json(self) -> str:
        """The settings as one line of JSON, which `settings` reads."""
        return json.dumps(asdict(self), sort_keys=True)


def settings(text: str) -> Settings:
    """The settings of a text that `Settings.to_json` made."""
    table = json.loads(text)
    if "backend" in table:  # runs of older versions had one backend
        table["backends"] = (table.pop("backend"),)
    for name in ("backends", "checks", "measures", "operators", "models", "lessons"):
        table[name] = tuple(table[name])
    for name in ("left_to_torch", "rounded"):
        table[name] = tuple(table.get(name, ()))  # absent in runs of older versions
    table["workload"] = tuple(WeightedShape(**shape) for shape in table["workload"])
    table["transferred"] = tuple(Transferred(**f) for f in table["transferred"])
    return Settings(**table)
