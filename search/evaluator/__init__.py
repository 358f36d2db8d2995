"""Evaluators: find the outcome of a candidate in a sandbox."""
