"""Evaluators: what becomes of a candidate, found out where it can do no harm."""
