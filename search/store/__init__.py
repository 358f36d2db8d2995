"""Stores of runs: a database or memory."""
