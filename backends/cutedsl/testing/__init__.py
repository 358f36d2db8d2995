"""Helpers of this backend's tests: kernels run on the CPU, thread by thread."""
