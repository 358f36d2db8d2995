"""Runs a source on the CPU by Triton's interpreter, with repairs and memory checks."""
