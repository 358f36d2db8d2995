"""The place of a store's large texts."""

import sqlalchemy as sql
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Creates the table."""
    op.create_table(
        "artefacts",
        sql.Column("name", sql.String, primary_key=True),
        sql.Column("address", sql.Text, nullable=False),
    )
