"""Cubins: what the languages share whose kernels NVIDIA's driver launches from one."""
