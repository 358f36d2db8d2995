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
        help="a model that edits kernels, in addition to the other operators; several models share the "
        "requests by weight",
    )
    group.add_argument(
        "--price",
        action="append",
        default=[],
        metavar="NAME=IN/OUT",
        help="price of a million tokens; or a file of prices",
    )
    group.add_argument(
        "--max-tokens",
        metavar="N",
        help="limit of the tokens that models read and write for each kernel",
    )
    group.add_argument(
        "--max-cost",
        metavar="X",
        help="limit of the cost of models for each kernel, in the currency of the prices",
    )
    group.add_argument(
        "--context-window",
        metavar="N",
        help="tokens that a model reads and writes in one exchange, which limits prompts "
        f"(default: {WINDOW})",
    )


def _asking(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--requests",
        metavar="N",
        help=f"requests in flight at once (default: {REQUESTS}); each answer is evaluated at once, and "
        "the next prompt contains the result",
    )
    group.add_argument(
        "--answer-tokens",
        metavar="N",
        help=f"limit of the tokens of one answer, including thinking (default: {ANSWER_TOKENS})",
    )
    group.add_argument(
        "--effort",
        metavar="WORD",
        help="reasoning_effort of a model, in the endpoint's words, such as low, medium or high "
        "(default: the endpoint's)",
    )
    group.add_argument(
        "--weigh",
        metavar="HOW",
        help="cost of a model's answer relative to an evaluation: time[:SECONDS] that it delays the "
        "search, money:AMOUNT or tokens[:NUMBER] that count as one evaluation, or none "
        f"(default: {WEIGH}, 60 s)",
    )
    group.add_argument(
        "--answer-timeout",
        metavar="S",
        help=f"timeout of a whole answer, in seconds (default: {DEADLINE:g})",
    )
    group.add_argument(
        "--silence-timeout",
        metavar="S",
        help=f"timeout of the next piece of an answer, in seconds (default: {SILENCE:g})",
    )
    group.add_argument(
        "--steps",
        metavar="N",
        help="steps that a model may take before it answers: compile, check or profile a draft, read "
        f"a document, list legal edits (default: up to {STEPS}; 0 for none)",
    )
    group.add_argument(
        "--trials",
        metavar="N",
        help="limit of the combinations of values that are timed if a model's answer has parameters; "
        f"each counts as an evaluation (default: {TRIALS}; 1 for only the first)",
    )
    group.add_argument(
        "--coach",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="let a model also improve the prompts, every few evaluations",
    )
    group.add_argument(
        "--replay",
        metavar="RUN",
        help="repeat a stored run with its stored answers, without a model",
    )
