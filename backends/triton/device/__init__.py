"""The device: Triton kernels run and timed on the GPU."""
