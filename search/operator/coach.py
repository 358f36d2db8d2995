"""The coach: every few generations a model edits the regions of the prompts it is asked with."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ir.errors import KernelError
from search.core.evaluation import Evaluated, Evaluation, Failure
from search.core.graph import Graph
from search.llm.exchange import Answer, Message, ModelError, Request
from search.operator.halting import gave_up
from search.prompt.answer import Refused, edited
from search.prompt.archive import Prompts, Shown, Version, shown
from search.prompt.regions import MOST
from search.prompt.render import rendered

EVERY = 10  # generations
ANSWER = 4_000  # tokens of an answer at most
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
    temperature: float = 0.7
    # Is told of each answer that is not taken, and why.
    refuse: Callable[[Request, str], None] = lambda request, reason: None

    def advance(
        self, generation: int, graph: Graph, outcomes: Mapping[str, Evaluated], seed: int
    ) -> Version | None:
        """Before a generation is asked: a new version, where one is due and the answer is good.

        The same graph, outcomes, seed and answers give the same: a run that goes on calls this
        for the generations that it has behind it too, and the stored answers do the rest.
        """
        if generation == 0 or generation % self.every:
            return None
        rng = random.Random(f"{seed}/prompts/{generation}")
        version = self.prompts.draw(graph, outcomes, rng)
        move = rng.choice(list(MOVES))
        text = self._text(version, move, graph, outcomes)
        request = Request(
            self.model(rng),
            (Message("user", text),),
            self.temperature,
            ANSWER,
            rng.randrange(1 << 31),
        )
        try:
            answer = self.ask(request)
        except ModelError as error:
            gave_up(error)
            return None
        try:
            found = edited(answer.text, version.regions.files())
            made = Version(version.regions.with_files(found.files), version.digest, move)
            if self.prompts.add(made):
                return made
            reason = "the archive has this version"
        except (Refused, KernelError) as error:
            reason = str(error)
        self.refuse(request, reason)
        return None

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
