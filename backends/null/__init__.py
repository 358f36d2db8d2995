"""A backend without hardware, for tests: a search takes milliseconds on it, but proves nothing
about kernels."""
