"""Triton: kernels for GPUs, compiled here without one."""
