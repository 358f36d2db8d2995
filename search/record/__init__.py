"""Records: the files of a kernel that a search found, in `kernels_generated/`."""
