"""Kernels that a search found, for each target: their records, and the test of any record."""
