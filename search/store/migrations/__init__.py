"""Changes of a store's tables, one file each in `versions/`; Alembic applies them."""
