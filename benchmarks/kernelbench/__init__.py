"""KernelBench: which of its problems are imported, and rightly."""
