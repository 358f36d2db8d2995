"""Jobs (searches with one budget), their rounds, and the process that works on each."""

import sqlalchemy as sql
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Creates the tables."""
    op.create_table(
        "jobs",
        sql.Column("id", sql.String, primary_key=True),
        sql.Column("text", sql.Text, nullable=False),
        sql.Column("started", sql.Float, nullable=False),
    )
    op.create_table(
        "job_claims",
        sql.Column("job", sql.String, sql.ForeignKey("jobs.id"), primary_key=True),
        sql.Column("holder", sql.Text, nullable=False),
        sql.Column("at", sql.Float, nullable=False),
    )
    op.create_table(
        "rounds",
        sql.Column("job", sql.String, sql.ForeignKey("jobs.id"), primary_key=True),
        sql.Column("number", sql.Integer, primary_key=True),
        sql.Column("search", sql.Integer, nullable=False),
        sql.Column("evaluations", sql.Integer, nullable=False),
        sql.Column("run", sql.String, sql.ForeignKey("runs.id"), nullable=True),
        sql.Column("ended", sql.Text, nullable=False),
        sql.Column("over", sql.Boolean, nullable=False),
    )
