"""Changes of a store's tables, one file each in `versions/`, which Alembic applies."""
