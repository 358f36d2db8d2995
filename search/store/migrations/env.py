"""The script that Alembic runs for each command: applies the migrations on the given connection."""

from alembic import context

# The caller owns the transaction, so a migration is atomic.
context.configure(connection=context.config.attributes["connection"], transactional_ddl=False)
context.run_migrations()
