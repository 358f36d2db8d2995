"""The CUDA C++ backend: emits CUDA C++ from thread programs."""
