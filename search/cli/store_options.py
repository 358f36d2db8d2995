"""The options of `evolve` about stores."""

from __future__ import annotations

import argparse


def store_options(group: argparse._ArgumentGroup) -> None:
    """Adds them to a group of the help."""
    group.add_argument(
        "--store",
        metavar="URL",
        help="where runs are stored: an SQLite file, or postgresql://USER@HOST:PORT/DATABASE; the "
        "password comes from PGPASSWORD or ~/.pgpass",
    )
    group.add_argument(
        "--artefacts",
        metavar="URL",
        help="where the store keeps large texts, instead of in its rows: a folder, or a URL for "
        "fsspec; the store remembers it",
    )
    group.add_argument(
        "--collect-artefacts",
        action="store_true",
        help="remove the artefacts that the store does not refer to",
    )
    group.add_argument(
        "--no-store",
        action="store_true",
        help="do not store runs, and promote only with --promote; results are printed",
    )
    group.add_argument("--resume", metavar="RUN", help="resume a run or a job that was stopped")
    group.add_argument(
        "--salvage",
        metavar="NEW.db",
        help="copy the readable part of a damaged store to a new one",
    )
    group.add_argument(
        "--copy-store",
        metavar="URL",
        help="copy the whole store to a new file or an empty database",
    )
    group.add_argument("--list-runs", action="store_true", help="list the runs of the store")
    group.add_argument(
        "--show",
        metavar="RUN",
        help="print a stored run: settings, times, the winner's lineage, schedule and source; or "
        "a job: its searches",
    )
