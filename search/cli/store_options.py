"""The options of `evolve` about stores."""

from __future__ import annotations

import argparse


def store_options(group: argparse._ArgumentGroup) -> None:
    """Adds them to a group of the help."""
    group.add_argument(
        "--store",
        metavar="URL",
        help="where runs are kept: an SQLite file, or postgresql://USER@HOST:PORT/DATABASE, whose "
        "password is taken from PGPASSWORD or ~/.pgpass",
    )
    group.add_argument(
        "--artefacts",
        metavar="URL",
        help="where large texts of the store lie instead of in its rows: a folder, or a URL that "
        "fsspec reaches; the store knows it from then on",
    )
    group.add_argument(
        "--collect-artefacts",
        action="store_true",
        help="remove the artefacts that nothing in the store refers to",
    )
    group.add_argument(
        "--no-store",
        action="store_true",
        help="keep no runs, and promote nothing without --promote: what is found is printed",
    )
    group.add_argument(
        "--resume", metavar="RUN", help="go on with a run, or a job, that was stopped"
    )
    group.add_argument(
        "--salvage",
        metavar="NEW.db",
        help="copy what can still be read of a damaged store to a new one",
    )
    group.add_argument(
        "--copy-store",
        metavar="URL",
        help="copy the whole store to a new file or an empty database",
    )
    group.add_argument("--list-runs", action="store_true", help="say which runs the store holds")
    group.add_argument(
        "--show",
        metavar="RUN",
        help="print a stored run: settings, times, the winner's lineage, schedule and source; or "
        "a job: its searches",
    )
