"""Applies the migrations that a store lacks."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy.engine import Connection


def config(connection: Connection | None = None) -> Config:
    """Alembic's configuration for this folder. It reads no file of the user."""
    made = Config()
    made.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    made.attributes["connection"] = connection
    return made


def upgrade(connection: Connection) -> None:
    """Migrates a database to the latest revision, in the connection's transaction."""
    command.upgrade(config(connection), "head")
