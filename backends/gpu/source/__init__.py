"""Prints thread programs as sources of C-like languages, and describes launches of the compiled code."""
