"""Compares whole third-party modules with PyTorch on a device."""
