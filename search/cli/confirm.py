"""Confirmation: an edited source is checked again with a secret that its search did not use.

A failure reports the shape at which it was found, and a model may write that shape into its next
candidate. A check with another secret finds a source that is correct only at the shapes of the
first.
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

if TYPE_CHECKING:  # only with --cluster
    from search.cli.clusters import Evaluating


def require_confirmed(
    bench: Bench,
    candidates: Sequence[Candidate],
    secret: str,
    evaluating: Evaluating = LocalEvaluator,
) -> None:
    """Raises KernelError if a candidate with an edited source is wrong by another secret."""
    edited = [c for c in candidates if c.source is not None]
    if not edited:
        return
    with evaluating([replace(bench, secret=secret)], 1) as local:
        found = dict(local.evaluate(edited))
    for number in range(len(edited)):
        outcome = found[number]
        if isinstance(outcome, Failure) and outcome.partly is None:
            raise KernelError(
                "the winner is not stored: its source is correct with the secret of its search but "
                f"not with another. {outcome.stage}: {outcome.reason}",
                where=edited[number].key,
                hint="search again; another --seed draws other inputs and shapes",
            )
