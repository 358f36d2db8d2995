"""The process that works on each run, and the secret of checks. A revision replaces the format
number."""

import sqlalchemy as sql
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Creates both tables; drops the table of the format, which old stores may lack."""
    op.create_table(
        "claims",
        sql.Column("run", sql.String, sql.ForeignKey("runs.id"), primary_key=True),
        sql.Column("holder", sql.Text, nullable=False),
        sql.Column("at", sql.Float, nullable=False),
    )
    op.create_table("secret", sql.Column("text", sql.String, primary_key=True))
    op.drop_table("format", if_exists=True)
