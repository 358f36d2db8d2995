"""Runs and times Triton kernels on the GPU."""
