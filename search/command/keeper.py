"""The keeper of a command's runs: the store that the user names, or none."""

from __future__ import annotations

from ir.errors import KernelError
from search.command.arguments import Arguments
from search.command.packages import require
from search.command.surroundings import Surroundings
from search.stored import Keeper


def keeper(asked: Arguments, around: Surroundings) -> Keeper:
    """Where runs are kept; KernelError where what that takes is not there."""
    if asked.no_store:
        from search.store.forgetful import Forgetful

        return Forgetful()
    require("sqlalchemy", "it keeps runs in a store", "install it, or give --no-store")
    from search.store.store import Store

    return Store(url(asked, around))


def url(asked: Arguments, around: Surroundings) -> str:
    """The store's URL or path. A run can only be read where there is one: none is made for it."""
    if asked.store is not None and "://" in asked.store:
        return asked.store
    store = around.path(asked.store or around.store)
    for option, run in (
        ("--resume", asked.resume),
        ("--replay", asked.replay),
        ("--show", asked.show),
    ):
        if run is not None and not store.is_file():
            raise KernelError(
                f"there is no store in `{store}`, so there is no run `{run}`",
                where=option,
                hint="name the store that the run was made in with --store",
            )
    return str(store)
