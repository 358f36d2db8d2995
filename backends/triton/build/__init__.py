"""Compiles a source for a GPU, which need not be present, and analyses the compiled code."""
