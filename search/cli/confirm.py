"""Confirmation: a source of its own is compared once more, by a secret that its search did not use.

A failure names the shape at which it was found, so a model may write that shape into its next
candidate. What is right at the shapes of one secret alone is found by another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ir.errors import KernelError
from search.core.candidate import Candidate
from search.core.evaluation import Failure
from search.evaluator.local import LocalEvaluator
from search.evaluator.stages import Bench

if TYPE_CHECKING:  # it is loaded with --cluster alone
    from search.cli.clusters import Evaluating


def require_confirmed(
    bench: Bench,
    candidates: Sequence[Candidate],
    secret: str,
    evaluating: Evaluating = LocalEvaluator,
) -> None:
    """KernelError where a candidate with a source of its own is wrong by another secret."""
    edited = [c for c in candidates if c.source is not None]
    if not edited:
        return
    with evaluating([replace(bench, secret=secret)], 1) as local:
        found = dict(local.evaluate(edited))
    for number in range(len(edited)):
        outcome = found[number]
        if isinstance(outcome, Failure) and outcome.partly is None:
            raise KernelError(
                "the winner is not kept: its source is right by the secret of its search and "
                f"not by another. {outcome.stage}: {outcome.reason}",
                where=edited[number].key,
                hint="search again; another --seed draws other inputs and shapes",
            )
