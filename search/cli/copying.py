"""`--copy-store`: copies the whole store, with its lessons, to another place."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ir.errors import KernelError
from search.cli.arguments import Arguments
from search.cli.files import artefacts, require, require_folder, require_writable, url
from search.cli.invocation import Invocation
from search.cli.tables import columns
from search.prompt.document import document
from search.prompt.lessons import Folder, beside
from search.store.address import SQLITE, address_of, is_url, without_password

OPTION = "--copy-store"


def copied(asked: Arguments, around: Invocation, to: str) -> tuple[dict[str, Any], str]:
    """Copies the store. Returns the number of rows by table, as plain data and as text."""
    require("sqlalchemy", "it keeps runs in a store", "install it", OPTION)
    from search.store.copying import copy_store

    place, new = url(asked, around), to if is_url(to) else str(around.path(to))
    if not is_url(place) and not Path(place).is_file():
        raise KernelError(
            f"there is no store in `{place}`", where="--store", hint="name the store to be copied"
        )
    if not is_url(new):
        require_writable(OPTION, Path(new))
    old_shelf, new_shelf = _folder(place), _folder(new)

    def keep(lessons: Mapping[str, str]) -> None:
        assert new_shelf is not None, "the new store is a file"
        for name, text in lessons.items():
            new_shelf.add(document(name, text))

    rows = copy_store(
        place,
        new,
        lessons=_texts(old_shelf),
        refuse=lambda lessons: _require_own(new_shelf, lessons),
        keep=keep,
        say=lambda line: print(f"evolve: {line}", file=sys.stderr),
        artefacts=artefacts(asked, around),
    )
    said = columns([("table", "rows"), *((n, str(c)) for n, c in rows.items())], "<>", around.width)
    shown = without_password(new)
    return {"store": shown, "rows": rows}, f"{said}\n{shown} holds {rows['runs']} runs\n"


def _folder(store: str) -> Folder | None:
    """The lessons' folder of a store in a file; None if the store itself has the lessons."""
    return Folder(beside(store)) if address_of(store).kind == SQLITE else None


def _texts(shelf: Folder | None) -> dict[str, str]:
    return {} if shelf is None else {d.name: d.file_text for d in shelf.documents()}


def _require_own(shelf: Folder | None, lessons: Mapping[str, str]) -> None:
    """Raises KernelError if a lesson would replace one of another store."""
    if shelf is None or not lessons:
        return
    require_folder(OPTION, shelf.path)
    there = _texts(shelf)
    taken = [name for name, text in lessons.items() if there.get(name, text) != text]
    if taken:
        raise KernelError(
            f"`{shelf.place}` has another lesson `{taken[0]}`",
            where=OPTION,
            hint="name a file in another folder",
        )
