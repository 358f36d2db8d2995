"""The simulator of a custom accelerator: C++, built by Bazel or on first use (see `load`)."""
