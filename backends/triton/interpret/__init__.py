"""Interpretation: a source run on the CPU by Triton's interpreter, repaired and memory-checked."""
