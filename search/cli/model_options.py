"""The options of `evolve` about models and requests."""

from __future__ import annotations

import argparse

from search.core.settings import ANSWER_TOKENS, REQUESTS, STEPS, TRIALS, WEIGH, WINDOW
from search.llm.endpoint import DEADLINE, SILENCE


def model_options(group: argparse._ArgumentGroup) -> None:
    """Adds them to a group of the help."""
    _asked(group)
    _asking(group)


def _asked(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--model",
        action="append",
        default=[],
        metavar="NAME[:WEIGHT]",
        help="a model that edits kernels beside the other operators; several share "
        "the requests by weight",
    )
    group.add_argument(
        "--price",
        action="append",
        default=[],
        metavar="NAME=IN/OUT",
        help="what a million tokens cost; or a file of prices",
    )
    group.add_argument(
        "--max-tokens", metavar="N", help="tokens that models may read and write for each kernel"
    )
    group.add_argument(
        "--max-cost",
        metavar="X",
        help="what models may cost for each kernel, in the currency of the prices",
    )
    group.add_argument(
        "--context-window",
        metavar="N",
        help="tokens that a model reads and writes in one exchange, by which prompts are made "
        f"(default: {WINDOW})",
    )


def _asking(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--requests",
        metavar="N",
        help=f"requests in flight at once (default: {REQUESTS}); a child is evaluated as soon as it "
        "is answered, and the next prompt knows of it",
    )
    group.add_argument(
        "--answer-tokens",
        metavar="N",
        help=f"tokens of one answer at most, thinking included (default: {ANSWER_TOKENS})",
    )
    group.add_argument(
        "--effort",
        metavar="WORD",
        help="how hard a model thinks, in the endpoint's words, as low, medium or high "
        "(reasoning_effort; default: the endpoint's)",
    )
    group.add_argument(
        "--weigh",
        metavar="HOW",
        help="what a model's answer costs beside an evaluation: time[:SECONDS] that it holds up the "
        "search, money:AMOUNT or tokens[:NUMBER] that count as one evaluation, or none "
        f"(default: {WEIGH}, 60 s)",
    )
    group.add_argument(
        "--answer-timeout",
        metavar="S",
        help=f"the longest wait for a whole answer (default: {DEADLINE:g})",
    )
    group.add_argument(
        "--silence-timeout",
        metavar="S",
        help=f"the longest wait for the next piece of an answer (default: {SILENCE:g})",
    )
    group.add_argument(
        "--steps",
        metavar="N",
        help="what a model may do before it answers: have drafts compiled, checked or profiled, read "
        f"documents, list legal edits (default: up to {STEPS}; 0 for nothing)",
    )
    group.add_argument(
        "--trials",
        metavar="N",
        help="combinations of values that are timed at most, each as an evaluation, where a model's "
        f"answer has parameters (default: {TRIALS}; 1 for none but the first)",
    )
    group.add_argument(
        "--coach",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="let a model improve the prompts too, every few evaluations",
    )
    group.add_argument(
        "--replay",
        metavar="RUN",
        help="make a stored run again with the answers that it had, asking nobody",
    )
