"""Keepers of runs: a database, or memory; and what earlier runs in a store found."""
