"""Test fixtures of this backend: library kernels with schedules, and handwritten sources."""
