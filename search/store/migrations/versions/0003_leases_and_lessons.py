"""Leases on candidates of a shared store, and lessons of a store that is not a file."""

import sqlalchemy as sql
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Creates both tables."""
    op.create_table(
        "leases",
        sql.Column("context", sql.String, primary_key=True),
        sql.Column("key", sql.String, primary_key=True),
        sql.Column("holder", sql.String, nullable=False),
        sql.Column("until", sql.Float, nullable=False),
    )
    op.create_table(
        "lessons",
        sql.Column("name", sql.String, primary_key=True),
        sql.Column("text", sql.Text, nullable=False),
    )
