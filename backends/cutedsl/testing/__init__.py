"""For tests: kernels of this backend run on the CPU, thread by thread."""
