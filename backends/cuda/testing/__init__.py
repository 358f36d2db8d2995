"""Helpers of this backend's tests: emitted kernels run on the CPU, thread by thread."""
