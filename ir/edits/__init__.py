"""Edits: every single change that a schedule admits."""
