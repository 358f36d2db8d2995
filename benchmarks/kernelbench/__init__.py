"""Compiles KernelBench's problems for a target, and counts how many are correct."""
