"""Shared by languages whose kernels NVIDIA's driver launches from a cubin."""
