"""Whole modules that nobody here wrote, against PyTorch on a device."""
