"""Shared parts of backends for C-like languages: texts, functions, arrays, compilers, clocks."""
