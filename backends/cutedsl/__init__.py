"""CuTe DSL: kernels as Python functions, compiled where no GPU need be."""
