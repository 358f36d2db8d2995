"""The build: Bazel rules, and the Python programs that they run."""
