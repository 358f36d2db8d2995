"""Shared by the languages of GPUs: tile programs, and in folders thread programs, the time model,
the analysis of compiled code, and devices."""
