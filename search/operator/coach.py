"""The coach: every few evaluations a model edits the regions of the prompts it is asked with."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ir.errors import KernelError
from ir.machine import Machine
from search.core.candidate import Candidate
from search.core.evaluation import Evaluated, Evaluation
from search.core.graph import Graph
from search.core.settings import ANSWER_TOKENS
from search.llm.exchange import Answer, Message, ModelError, Request
from search.loop.context import Refused
from search.operator.halting import gave_up
from search.prompt import answer as answers
from search.prompt.answer import edited
from search.prompt.archive import Prompts, Shown, Version, shown
from search.prompt.history import Step, Teller, one_of_each
from search.prompt.regions import MOST
from search.prompt.render import rendered

EVERY = 8  # evaluations: a version is asked for, used and judged within 32
SEEN = 3  # children that are told of: of the best, and of the latest that failed or gained nothing
REFUSED = 4  # requests that are told of, of which nothing came
LINES = 24  # of the diff of a child
MOVES = {
    "improve": "Correct what does not work, by the figures below.",
    "specialise": "Make the advice sharper for this kernel and this machine.",
    "generalise": "Remove what holds for one kernel only, and say what holds for all kernels.",
    "simplify": "Shorten: keep what changes an answer, drop the rest.",
    "elaborate": "Add what is missing: a case, an order of steps, a worked example.",
}


@dataclass(frozen=True, slots=True)
class Coach:
    """Grows the archive of prompts."""

    ask: Callable[[Request], Answer]  # sends a request
    model: Callable[[random.Random], str]  # draws the name of one
    prompts: Prompts
    kernel: str  # its name, for the model
    machine: Machine
    source: Callable[[Candidate], str]  # what a candidate comes to in its backend's language
    every: int = EVERY
    answer_tokens: int = ANSWER_TOKENS
    temperature: float = 0.7
    # Is told of each answer that is not taken, and why.
    refuse: Callable[[Request, str], None] = lambda request, reason: None

    def begin(
        self,
        graph: Graph,
        outcomes: Mapping[str, Evaluated],
        seed: str,
        refused: Sequence[Refused] = (),
    ) -> Callable[[], Callable[[], None] | None]:
        """Writes a request for a new version. What it gives asks the model, and gives what puts the
        version into effect; None where the answer is not taken.

        refused: requests of which nothing came. The same graph, outcomes, requests, seed and answers
        give the same.
        """
        rng = random.Random(seed)
        version = self.prompts.draw(graph, outcomes, rng)
        move = rng.choice(list(MOVES))
        text = self._text(version, move, graph, outcomes, refused)
        request = Request(
            self.model(rng),
            (Message("user", text),),
            self.temperature,
            self.answer_tokens,
            rng.randrange(1 << 31),
        )
        return partial(self._asked, version, move, request)

    def _asked(self, version: Version, move: str, request: Request) -> Callable[[], None] | None:
        try:
            answer = self.ask(request)
        except ModelError as error:
            gave_up(error)
            return None
        try:
            found = edited(answer.text, version.regions.files())
            if found.parameters:
                raise answers.Refused(f"a region has no parameters: {', '.join(found.parameters)}")
            made = Version(version.regions.with_files(found.files), version.digest, move)
        except (answers.Refused, KernelError) as error:
            self.refuse(request, str(error))
            return None
        return partial(self._take, made, request)

    def _take(self, made: Version, request: Request) -> None:
        if not self.prompts.add(made):
            self.refuse(request, "the archive has this version")

    def _text(
        self,
        version: Version,
        move: str,
        graph: Graph,
        outcomes: Mapping[str, Evaluated],
        refused: Sequence[Refused],
    ) -> str:
        come_of: Shown = shown(version, graph, outcomes)
        others = [
            f"made by `{v.move}`: best gain {s.gain:.3g} with {s.children} children"
            for v in self.prompts.versions.values()
            if v is not version
            for s in (shown(v, graph, outcomes),)
        ]
        return rendered(
            "meta",
            move=move,
            moves=MOVES,
            regions=version.regions.files(),
            kernel=self.kernel,
            machine=self.machine.title,
            children=come_of.children,
            failed=come_of.failed,
            gain=f"{come_of.gain:.3g}",
            **self._seen(version, graph, outcomes),
            refused=[r for r in refused if r.prompt == version.digest][-REFUSED:],
            versions=others,
            most=MOST,
        )

    def _seen(
        self, version: Version, graph: Graph, outcomes: Mapping[str, Evaluated]
    ) -> dict[str, list[Step]]:
        """The children of a version that gained most over their parents, and the latest others."""
        teller = Teller(graph, outcomes, self.machine.name, self.source)
        made = [c for c in graph if c.origin.prompt == version.digest and c.key in outcomes]
        gain = {c.key: _gain(c, outcomes) for c in made}
        ranked = one_of_each(sorted(made, key=lambda c: -gain[c.key]))
        best = [c for c in ranked if gain[c.key] > 1.0][:SEEN]
        others = [c for c in one_of_each(ranked, made) if gain[c.key] <= 1.0][-SEEN:]
        told = {"best": best, "others": others}
        return {
            name: [_short(teller.step(graph.node(c.origin.parents[0]), c)) for c in children]
            for name, children in told.items()
        }


def _gain(child: Candidate, outcomes: Mapping[str, Evaluated]) -> float:
    """How much faster it is than its parent; 0 where it failed, 1 where the parent did."""
    before, after = outcomes.get(child.origin.parents[0]), outcomes[child.key]
    if not isinstance(after, Evaluation):
        return 0.0
    return before.us / after.us if isinstance(before, Evaluation) else 1.0


def _short(step: Step) -> Step:
    lines = step.diff.split("\n")
    left = len(lines) - LINES
    if left <= 0:
        return step
    return replace(step, diff="\n".join([*lines[:LINES], f"[... {left} lines left out]"]))
