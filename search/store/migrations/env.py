"""What Alembic runs for each command: the migrations, on the connection that it is given."""

from alembic import context

# The transaction is the caller's: a store is migrated whole or not at all.
context.configure(connection=context.config.attributes["connection"], transactional_ddl=False)
context.run_migrations()
