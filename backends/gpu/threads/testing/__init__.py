"""Shared by tests of this folder: thread programs written by hand, and kernels lowered to thread programs."""
