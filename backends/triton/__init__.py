"""The Triton backend: kernels for GPUs, compiled without a GPU."""
