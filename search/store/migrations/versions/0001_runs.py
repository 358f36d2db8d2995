"""Runs with their candidates, evaluations, events and exchanges with models."""

import sqlalchemy as sql
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Creates the tables."""
    op.create_table("format", sql.Column("number", sql.Integer, primary_key=True))
    op.create_table(
        "runs",
        sql.Column("id", sql.String, primary_key=True),
        sql.Column("kernel", sql.String, nullable=False),
        sql.Column("target", sql.String, nullable=False),
        sql.Column("settings", sql.Text, nullable=False),
        sql.Column("environment", sql.Text, nullable=False),
        sql.Column("started", sql.Float, nullable=False),
    )
    op.create_table(
        "nodes",
        sql.Column("run", sql.String, sql.ForeignKey("runs.id"), primary_key=True),
        sql.Column("key", sql.String, primary_key=True),
        sql.Column("generation", sql.Integer, nullable=False),
        sql.Column("rank", sql.Integer, nullable=False),
        sql.Column("candidate", sql.Text, nullable=False),
    )
    op.create_table(
        "edges",
        sql.Column("run", sql.String, sql.ForeignKey("runs.id"), primary_key=True),
        sql.Column("child", sql.String, primary_key=True),
        sql.Column("rank", sql.Integer, primary_key=True),
        sql.Column("parent", sql.String, nullable=False),
        sql.Column("operator", sql.String, nullable=False),
        sql.Column("note", sql.Text, nullable=False),
    )
    op.create_table(
        "evaluations",
        sql.Column("run", sql.String, sql.ForeignKey("runs.id"), primary_key=True),
        sql.Column("key", sql.String, primary_key=True, index=True),
        sql.Column("context", sql.String, nullable=False),
        sql.Column("outcome", sql.Text, nullable=False),
        sql.Column("at", sql.Float, nullable=False),
    )
    op.create_table(
        "events",
        sql.Column("id", sql.Integer, primary_key=True, autoincrement=True),
        sql.Column("run", sql.String, sql.ForeignKey("runs.id"), nullable=False, index=True),
        sql.Column("kind", sql.String, nullable=False),
        sql.Column("key", sql.String, nullable=False),
        sql.Column("seconds", sql.Float, nullable=False),
        sql.Column("detail", sql.Text, nullable=False),
    )
    op.create_table(
        "exchanges",
        sql.Column("id", sql.Integer, primary_key=True, autoincrement=True),
        sql.Column("run", sql.String, sql.ForeignKey("runs.id"), nullable=False),
        sql.Column("digest", sql.String, nullable=False),
        sql.Column("rank", sql.Integer, nullable=False),
        sql.Column("request", sql.Text, nullable=False),
        sql.Column("reply", sql.Text, nullable=False),
        sql.Column("seconds", sql.Float, nullable=False),
        sql.UniqueConstraint("run", "digest", "rank"),
    )
