"""A PostgreSQL server of a test's own, on loopback."""
