"""Interpreting: a source run on the CPU, with triton's interpreter repaired and guarded."""
