"""KernelBench: its problem files in, its solution files out."""
