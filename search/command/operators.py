"""The operators and models that a user names, checked before anything starts."""

from __future__ import annotations

from collections.abc import Sequence

from ir.errors import KernelError
from search.llm.costs import prices
from search.llm.ensemble import ensemble
from search.llm.ledger import Ledger
from search.operator import MODEL_OPERATORS, local_operators

OPTION = "--operators"
ALL = "all"


def named_operators(names: Sequence[str], with_models: bool) -> tuple[str, ...]:
    """The operators that a user names, `all` for all there are; empty for the usual ones.

    KernelError where one is not known, or asks a model and none is named.
    """
    known = [*local_operators(), *(MODEL_OPERATORS if with_models else ())]
    if list(names) == [ALL]:
        return tuple(known)
    for name in names:
        if name not in known:
            asks = name in MODEL_OPERATORS
            raise KernelError(
                f"the operator `{name}` asks a model" if asks else f"no operator `{name}`",
                where=OPTION,
                allowed=", ".join((*known, ALL)),
                hint="name one with --model" if asks else "leave it out to take the usual ones",
            )
    if names and "combine" in names and len(names) == 1:
        raise KernelError(
            "`combine` takes two parents, and somebody must make the second",
            where=OPTION,
            hint="name an operator of one parent too",
        )
    return tuple(names)


def require_models(names: Sequence[str], paid: Sequence[str], max_cost: float | None) -> None:
    """KernelError where names or prices are not well-formed, or money is to be counted and a
    price is not known. paid: prices as the user gives them."""
    known = prices(paid)
    if names:
        Ledger(known, max_cost=max_cost).require_prices(ensemble(names).models)
