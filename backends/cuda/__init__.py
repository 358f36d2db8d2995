"""CUDA C++ from thread programs."""
