"""Merges the result files of several runs."""
