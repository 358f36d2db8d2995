"""Compiles ATen's operators for a target, and tests them with PyTorch's own samples."""
