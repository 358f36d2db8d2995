"""The device: kernels run and timed on the GPU."""
