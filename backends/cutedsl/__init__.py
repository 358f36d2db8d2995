"""The CuTe DSL backend: kernels as Python functions, compiled without a GPU."""
