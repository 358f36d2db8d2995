"""KernelBench's problems as kernels of a target: how many are right, and what it takes."""
