"""The coach: every few evaluations a model edits the regions of the prompts it is asked with."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from ir.errors import KernelError
from search.core.evaluation import Evaluated, Evaluation, Failure
from search.core.graph import Graph
from search.core.settings import ANSWER_TOKENS
from search.llm.exchange import Answer, Message, ModelError, Request
from search.operator.halting import gave_up
from search.prompt.answer import Refused, edited
from search.prompt.archive import Prompts, Shown, Version, shown
from search.prompt.regions import MOST
from search.prompt.render import rendered

EVERY = 12  # evaluations: a version is asked for, used and judged within 32
SEEN = 6  # children that are told of
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
    # Names, for the model.
    kernel: str
    machine: str
    every: int = EVERY
    answer_tokens: int = ANSWER_TOKENS
    temperature: float = 0.7
    # Is told of each answer that is not taken, and why.
    refuse: Callable[[Request, str], None] = lambda request, reason: None

    def begin(
        self, graph: Graph, outcomes: Mapping[str, Evaluated], seed: str
    ) -> Callable[[], Callable[[], None] | None]:
        """Writes a request for a new version. What it gives asks the model, and gives what puts the
        version into effect; None where the answer is not taken.

        The same graph, outcomes, seed and answers give the same.
        """
        rng = random.Random(seed)
        version = self.prompts.draw(graph, outcomes, rng)
        move = rng.choice(list(MOVES))
        text = self._text(version, move, graph, outcomes)
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
            made = Version(version.regions.with_files(found.files), version.digest, move)
        except (Refused, KernelError) as error:
            self.refuse(request, str(error))
            return None
        return partial(self._take, made, request)

    def _take(self, made: Version, request: Request) -> None:
        if not self.prompts.add(made):
            self.refuse(request, "the archive has this version")

    def _text(
        self, version: Version, move: str, graph: Graph, outcomes: Mapping[str, Evaluated]
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
            machine=self.machine,
            children=come_of.children,
            failed=come_of.failed,
            gain=f"{come_of.gain:.3g}",
            seen=list(_seen(version, graph, outcomes)),
            others=others,
            most=MOST,
        )


def _seen(version: Version, graph: Graph, outcomes: Mapping[str, Evaluated]) -> list[str]:
    """The latest children of a version, in words."""
    lines = []
    for child in graph:
        outcome = outcomes.get(child.key)
        if child.origin.prompt != version.digest or outcome is None:
            continue
        if isinstance(outcome, Failure):
            result = f"failed at {outcome.stage}: {outcome.headline}"
        else:
            before = outcomes.get(child.origin.parents[0])
            result = f"{outcome.us:.4g} us"
            if isinstance(before, Evaluation):
                result += f", its parent {before.us:.4g} us"
        lines.append(f"{child.origin.note or 'no reason given'}: {result}")
    return lines[-SEEN:]
